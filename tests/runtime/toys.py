"""Small models, each with one thing that a recorder can get wrong."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn


class Mlp(nn.Module):
    """Nested modules: ``up`` and ``down`` inside ``body``."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.body = nn.Sequential()
        self.body.add_module("up", nn.Linear(width, 2 * width))
        self.body.add_module("down", nn.Linear(2 * width, width))
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Any:
        return self.norm(self.body(x))


class InPlace(nn.Module):
    """Modules that overwrite their input."""

    def __init__(self) -> None:
        super().__init__()
        self.relu = nn.ReLU(inplace=True)
        self.halve = Halve()

    def forward(self, x: Tensor) -> Any:
        return self.relu(self.halve(x + 0))


class Halve(nn.Module):
    def forward(self, x: Tensor) -> Any:
        return x.mul_(0.5)


class Echo(nn.Module):
    """Gives back what ``answer`` says, whatever it is called with."""

    def __init__(self, answer: object = None) -> None:
        super().__init__()
        self.answer = answer

    def forward(self, *_: object, **__: object) -> object:
        return self.answer


class Around(nn.Module):
    """A root around one module under test, named ``inner``."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.inner(*args, **kwargs)


class Shared(nn.Module):
    """One module under two names, called through both; two modules with one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = self.first
        self.tied = nn.Linear(4, 4)
        self.tied.weight = self.first.weight

    def forward(self, x: Tensor) -> Any:
        return self.tied(self.second(self.first(x)))


class Fails(nn.Module):
    """Raises the error it is given, when it is given one."""

    def __init__(self) -> None:
        super().__init__()
        self.error: BaseException | None = None

    def forward(self, x: Tensor) -> Any:
        if self.error is not None:
            raise self.error
        return x


class Recovers(nn.Module):
    """Catches what ``risky`` raises inside ``inner``, then goes on to ``after``."""

    def __init__(self) -> None:
        super().__init__()
        self.risky = Fails()
        self.inner = Around(self.risky)
        self.after = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Any:
        try:
            x = self.inner(x)
        except ValueError:
            x = self.after(x)
        return self.after(x)


class Dropping(nn.Module):
    """Uses the random number generator."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.dropout = nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Any:
        return self.dropout(self.linear(x))


class Cube(torch.autograd.Function):
    """An operation with a backward of its own."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.pow(3)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * gradient * x.square()


Pair = namedtuple("Pair", ["left", "right"])


@dataclass
class Packed:
    lengths: Tensor
    name: str


def ones(*shape: int) -> Tensor:
    return torch.ones(*shape)
