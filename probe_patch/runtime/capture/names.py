"""The names that modules and functions have in a dump."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from torch import nn

Model: TypeAlias = nn.Module | Sequence[nn.Module]


class CallName(Protocol):
    """What is called; its entries in a dump are numbered per label, from 0."""

    @property
    def label(self) -> str:
        """What stands first in all its entries."""
        ...

    def forward(self, call: int) -> str:
        """The entry of one forward."""
        ...

    def backward(self, call: int) -> str:
        """The entry of that forward's backward."""
        ...


@dataclass(frozen=True)
class ModuleName:
    """``label`` is ``Module.{qualname}.{Class}``; of a root, ``Module.{Class}``."""

    label: str

    def forward(self, call: int) -> str:
        return f"{self.label}.forward.{call}"

    def backward(self, call: int) -> str:
        return f"{self.label}.backward.{call}"

    def parameters_gradient(self, firing: int) -> str:
        """The entry of the gradients that one backward pass brings to the module's own parameters."""
        return f"{self.label}.parameters_grad.{firing}"


@dataclass(frozen=True)
class FunctionName:
    """``label`` is ``{Prefix}.{function}``, such as ``Functional.linear`` or ``Tensor.__add__``."""

    label: str

    def forward(self, call: int) -> str:
        return f"{self.label}.{call}.forward"

    def backward(self, call: int) -> str:
        return f"{self.label}.{call}.backward"


@dataclass(frozen=True)
class NamedModule:
    """A module to record.

    Attributes:
        is_root: whether its call begins a forward pass: it is the model, or one of its virtual-pipeline chunks.
    """

    name: ModuleName
    module: nn.Module
    is_root: bool


def named_modules(model: Model) -> Iterator[NamedModule]:
    """Every module once, under the first of its names, a root before what is in it.

    A root has its class alone for a name; chunks of a list come with their index.
    """
    chunks = [(model, "Module")] if isinstance(model, nn.Module) else [(m, f"Module.{i}") for i, m in enumerate(model)]
    roots = {id(root) for root, _ in chunks}
    seen: set[int] = set()
    for root, prefix in chunks:
        for qualname, module in root.named_modules():
            if id(module) not in seen:
                seen.add(id(module))
                parts = (prefix, qualname, type(module).__name__) if qualname else (prefix, type(module).__name__)
                yield NamedModule(ModuleName(".".join(parts)), module, id(module) in roots)
