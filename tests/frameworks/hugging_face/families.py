"""Which models of transformers are trained, and how: what a test needs without importing it."""

import copy
import pickle
from collections.abc import Callable, Mapping
from typing import Any, Final

import torch

FAMILIES: Final = ("Qwen2", "Llama", "Qwen2 with gradient checkpointing", "Qwen3Moe")
VOCABULARY, LENGTH, ROWS, NEW_TOKENS = 64, 8, 2, 6

COPIES: Final[Mapping[str, Callable[[Any], Any]]] = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "torch.compile": lambda model: torch.compile(model, backend="eager"),
}
