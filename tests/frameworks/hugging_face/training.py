"""Small models of transformers with random weights: five optimizer steps, and generation."""

import random
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedModel, Qwen2Config, Qwen3MoeConfig

from tests.frameworks import fingerprints
from tests.frameworks.hugging_face.families import LENGTH, NEW_TOKENS, ROWS, VOCABULARY
from tests.frameworks.recording import STEPS, Around

_SIZE: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "initializer_range": 0.2,
    "attention_dropout": 0.1,
    "attn_implementation": "eager",
    "pad_token_id": 0,
}


def build(family: str) -> PreTrainedModel:
    """With the same weights at every call."""
    fingerprints.seed(7)
    model: PreTrainedModel = AutoModelForCausalLM.from_config(_config(family))  # type: ignore[no-untyped-call]
    if "gradient checkpointing" in family:
        model.gradient_checkpointing_enable()  # type: ignore[no-untyped-call]
    return model


def _config(family: str) -> Any:
    if family == "Llama":
        return LlamaConfig(**_SIZE, tie_word_embeddings=False)
    if family == "Qwen3Moe":
        experts: dict[str, Any] = {
            "head_dim": 8,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 16,
        }
        return Qwen3MoeConfig(**_SIZE, **experts)
    return Qwen2Config(**_SIZE, tie_word_embeddings=True)


def train(family: str, around: Around = lambda model: nullcontext()) -> dict[str, Any]:
    """Train a new model; ``around`` is entered for the forward and backward pass of each step.

    Returns:
        Digests: the output and loss, gradients and weights of each step, and at the end the random states.
    """
    model = build(family).train()
    fingerprints.seed(11)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    computed: dict[str, Any] = {name: [] for name in ("outputs", "types", "losses", "gradients", "weights")}
    for step in range(STEPS):
        optimizer.zero_grad()
        with around(model):
            tokens = prompts(step)
            output = model(input_ids=tokens, labels=tokens, use_cache=False)
            loss = output.loss * (random.random() + np.random.rand())
            loss.backward()
        computed["outputs"].append(fingerprints.digest([output.logits]))
        computed["types"].append(type(output).__name__)
        computed["losses"].append(float(loss).hex())
        computed["gradients"].append(fingerprints.gradients_of(model))
        optimizer.step()
        computed["weights"].append(fingerprints.weights_of(model))
    return {**computed, "random": fingerprints.random_states()}


def prompts(number: int) -> Tensor:
    """[ROWS, LENGTH] tokens; 0, which is padding, is not among them."""
    return torch.randint(1, VOCABULARY, (ROWS, LENGTH), generator=torch.Generator().manual_seed(number))


def generate(family: str, around: Around = lambda model: nullcontext()) -> dict[str, Any]:
    """The tokens of greedy search and of sampling, and the random states after them."""
    model = build(family).eval()  # type: ignore[no-untyped-call]
    fingerprints.seed(13)
    tokens = {}
    for way in ("greedy", "sampled"):
        with around(model):
            found = model.generate(prompts(0), max_new_tokens=NEW_TOKENS, eos_token_id=None, do_sample=way == "sampled")
        tokens[way] = found.tolist()
    return {"tokens": tokens, "random": fingerprints.random_states()}
