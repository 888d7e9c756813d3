"""Five optimizer steps of a small GPT through megatron-core's own schedules, and every bit of what they computed."""

import random
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import torch
from megatron.core.packed_seq_params import PackedSeqParams
from megatron.core.pipeline_parallel import get_forward_backward_func
from torch import Tensor, nn

from tests.frameworks import fingerprints
from tests.frameworks.megatron.gpt import build
from tests.frameworks.megatron.shapes import LENGTH, ROWS, VOCABULARY, Shape
from tests.frameworks.recording import STEPS, Around


def train(shape: Shape, steps: int = STEPS, around: Around = lambda chunks: nullcontext()) -> dict[str, Any]:
    """Train a new model; ``around`` is entered for the forward and backward passes of each step.

    Returns:
        Digests: ``outputs`` and ``losses`` of each micro-batch, ``gradients`` and ``weights`` of each step, and the
        states of the random number generators at the end.
    """
    chunks = build(shape)
    fingerprints.seed(11)
    optimizer = torch.optim.AdamW([parameter for chunk in chunks for parameter in chunk.parameters()], lr=1e-2)
    computed: dict[str, Any] = {name: [] for name in ("outputs", "losses", "gradients", "weights")}
    for step in range(steps):
        for chunk in chunks:
            if shape.wrapped:
                chunk.zero_grad_buffer()  # type: ignore[operator]
        optimizer.zero_grad()
        with around(chunks):
            results = _forward_and_backward(shape, chunks, step)
        computed["outputs"] += [result["output"] for result in results]
        computed["losses"] += [result["loss"].item().hex() for result in results]
        computed["gradients"].append([fingerprints.gradients_of(chunk) for chunk in chunks])
        if shape.wrapped:
            for parameter in chunks[0].parameters():
                parameter.grad = parameter.main_grad.to(parameter.dtype)  # type: ignore[attr-defined]
        optimizer.step()
        computed["weights"].append([fingerprints.weights_of(chunk) for chunk in chunks])
    return {**computed, "random": fingerprints.random_states()}


def _forward_and_backward(shape: Shape, chunks: Sequence[nn.Module], step: int) -> list[dict[str, Any]]:
    rows, length = (1, LENGTH * ROWS) if shape.packed else (ROWS, LENGTH)
    results: list[dict[str, Any]] = get_forward_backward_func()(
        forward_step_func=partial(_forward_step, shape),
        data_iterator=[_micro_batches(shape, step) for _ in chunks],
        model=list(chunks),
        num_microbatches=shape.micro_batches,
        seq_length=length,
        micro_batch_size=rows,
        forward_only=False,
    )
    return results


def _micro_batches(shape: Shape, step: int) -> Iterator[Tensor]:
    generator = torch.Generator().manual_seed(step)
    for _ in range(shape.micro_batches):
        yield torch.randint(VOCABULARY, (ROWS, LENGTH), generator=generator)


def _forward_step(shape: Shape, batches: Iterator[Tensor], chunk: nn.Module) -> tuple[Tensor, Any]:
    tokens = next(batches)
    labels = tokens.roll(-1, 1)
    if shape.packed:
        bounds = torch.tensor([0, 3, 10, LENGTH * ROWS], dtype=torch.int32)
        packing = PackedSeqParams("thd", bounds, bounds, max_seqlen_q=7, max_seqlen_kv=7)
        output = chunk(tokens.view(1, -1), None, None, labels=labels.view(1, -1), packed_seq_params=packing)
    else:
        mask = torch.ones(1, 1, LENGTH, LENGTH, dtype=torch.bool).triu(1)
        output = chunk(tokens, torch.arange(LENGTH).expand(ROWS, -1), mask, labels=labels)
    return output, _loss


def _loss(output: Tensor) -> tuple[Tensor, dict[str, Any]]:
    """The mean, weighted by chance, so that Python's and NumPy's generators are drawn from as well.

    The schedule divides the loss in place.
    """
    loss = output.float().mean() * (random.random() + np.random.rand())
    return loss, {"loss": loss.detach().clone(), "output": fingerprints.digest([output])}
