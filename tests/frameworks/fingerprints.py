"""What a run computed, as digests of every bit."""

import hashlib
import random
from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor, nn


def digest(tensors: Iterable[Tensor | None]) -> str:
    """Of dtypes, shapes and bits; None counts as well."""
    found = hashlib.sha256()
    for tensor in tensors:
        if tensor is None:
            found.update(b"none")
            continue
        found.update(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
        found.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


def weights_of(model: nn.Module) -> str:
    return digest(parameter for _, parameter in model.named_parameters())


def gradients_of(model: nn.Module) -> str:
    """Of ``grad``, and of ``main_grad`` where Megatron keeps one."""
    return digest(
        gradient
        for _, parameter in model.named_parameters()
        for gradient in (parameter.grad, getattr(parameter, "main_grad", None))
    )


def random_states() -> dict[str, str]:
    """Of Python, NumPy and torch."""
    states = {"python": repr(random.getstate()), "numpy": repr([*map(str, np.random.get_state())])}
    texts = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in states.items()}
    return {**texts, "torch": digest([torch.get_rng_state()])}


def seed(number: int) -> None:
    random.seed(number)
    np.random.seed(number)
    torch.manual_seed(number)
