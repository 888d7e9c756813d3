"""Plain hooks that see what a recording should see: an account of the same run that shares no code with ours."""

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed._functional_collectives import AsyncCollectiveTensor
from torch.distributed.tensor import DTensor

from probe_patch.runtime.capture.names import Model

Numbers = dict[str, Any]


class Observer:
    """What the modules of a model were called with and gave, by the names that entries have.

    Attributes:
        calls: by forward entry, in the order in which they ended: ``parent``, and the numbers of the tensors among
            ``inputs``, ``outputs``, ``parameters``, and of the gradients that ``arrived`` at its outputs. Those
            ``arrived_again`` came to outputs that the backward pass computed again; it does so for the latest call.
        gradients: of the model's parameters, by module and parameter, as the backward passes left them.
    """

    def __init__(self) -> None:
        self.calls: dict[str, dict[str, Any]] = {}
        self.gradients: dict[str, dict[str, Numbers]] = {}
        self._numbers_of_calls: Counter[str] = Counter()
        self._open: list[str] = []
        self._begun: dict[str, dict[str, Any]] = {}

    @contextmanager
    def watch(self, model: Model) -> Iterator[None]:
        handles = []
        named = list(labelled(model))
        for label, module in named:
            handles.append(module.register_forward_pre_hook(partial(self._before, label), with_kwargs=True))
            handles.append(module.register_forward_hook(partial(self._after, label)))
        yield
        for handle in handles:
            handle.remove()
        for label, module in named:
            kept = {name: _gradient(parameter) for name, parameter in module.named_parameters(recurse=False)}
            self.gradients[label] = {name: numbers(tensor) for name, tensor in kept.items() if tensor is not None}

    def _before(self, label: str, module: nn.Module, args: Any, kwargs: Any) -> None:
        if torch._C._current_graph_task_id() != -1:  # computed again in the backward pass
            return
        entry = f"{label}.forward.{self._numbers_of_calls[label]}"
        self._numbers_of_calls[label] += 1
        seen = [numbers(tensor) for tensor in tensors_in((args, kwargs))]
        self._begun[entry] = {
            "parent": self._open[-1] if self._open else None,
            "inputs": seen,
            "arrived": [],
            "arrived_again": [],
        }
        self._open.append(entry)

    def _after(self, label: str, module: nn.Module, args: Any, output: Any) -> None:
        outputs = list(tensors_in(output))
        if torch._C._current_graph_task_id() != -1:
            latest = self.calls[f"{label}.forward.{self._numbers_of_calls[label] - 1}"]
            self._await(outputs, latest["arrived_again"])
            return
        entry = self._open.pop()
        assert entry.startswith(f"{label}.forward.")
        call = self.calls[entry] = self._begun.pop(entry)
        call["outputs"] = [numbers(tensor) for tensor in outputs]
        own = module.named_parameters(recurse=False)
        call["parameters"] = {name: numbers(parameter) for name, parameter in own}
        self._await(outputs, call["arrived"])

    def _await(self, outputs: list[Tensor], arrived: list[Any]) -> None:
        for index, tensor in enumerate(outputs):
            if tensor.requires_grad:
                tensor.register_hook(partial(_note, arrived, index))  # type: ignore[no-untyped-call]


def _note(arrived: list[Any], index: int, gradient: Tensor) -> None:
    arrived.append([index, numbers(gradient)])


def labelled(model: Model) -> Iterator[tuple[str, nn.Module]]:
    """Every sub-module with its label, which has the number of its chunk if there is a list of them."""
    chunks = [("Module", model)] if isinstance(model, nn.Module) else [(f"Module.{n}", m) for n, m in enumerate(model)]
    for prefix, chunk in chunks:
        for name, module in chunk.named_modules():
            if name:
                yield f"{prefix}.{name}.{type(module).__name__}", module


def tensors_in(value: Any) -> Iterator[Tensor]:
    """In the order of a record."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for part in value:
            yield from tensors_in(part)
    elif isinstance(value, Mapping):
        yield from tensors_in(list(value.values()))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from tensors_in([getattr(value, field.name) for field in dataclasses.fields(value)])


def numbers(tensor: Tensor) -> Numbers:
    """Of this rank's part of it, in float64; to ``scale``, the mean magnitude, an error of the mean is relative.

    What is empty or still being communicated has no numbers.
    """
    tensor = tensor.detach()
    if isinstance(tensor, DTensor):
        tensor = tensor.to_local()
    found: Numbers = {"dtype": str(tensor.dtype), "shape": list(tensor.shape)}
    if tensor.numel() == 0 or (isinstance(tensor, AsyncCollectiveTensor) and not tensor.completed):
        return found
    exact = tensor.to(torch.float64)
    found |= {"Max": exact.max().item(), "Min": exact.min().item(), "Mean": exact.mean().item()}
    return {**found, "Norm": exact.norm().item(), "scale": exact.abs().mean().item()}


def _gradient(parameter: nn.Parameter) -> Tensor | None:
    kept: Tensor | None = getattr(parameter, "main_grad", parameter.grad)
    return kept
