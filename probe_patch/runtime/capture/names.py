"""The names that modules and functions have in a dump."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from torch import nn

Model: TypeAlias = nn.Module | Sequence[nn.Module]


class CallName(Protocol):
    """What is called; its entries in a dump are numbered per name, from 0."""

    def forward(self, call: int) -> str:
        """The entry of one forward."""
        ...

    def backward(self, call: int) -> str:
        """The entry of that forward's backward."""
        ...


@dataclass(frozen=True)
class ModuleName:
    """``label`` is ``Module.{qualname}.{Class}``."""

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
    """A module to record."""

    name: ModuleName
    module: nn.Module


def root_modules(model: Model) -> tuple[nn.Module, ...]:
    """The modules whose call begins a forward pass: the model, or each of its virtual-pipeline chunks."""
    return (model,) if isinstance(model, nn.Module) else tuple(model)


def named_submodules(model: Model) -> Iterator[NamedModule]:
    """Every sub-module once, under the first of its names; chunks of a list come with their index."""
    if isinstance(model, nn.Module):
        yield from _below(model, "Module")
        return
    seen: set[int] = set()
    for chunk, root in enumerate(model):
        for named in _below(root, f"Module.{chunk}"):
            if id(named.module) not in seen:
                seen.add(id(named.module))
                yield named


def _below(root: nn.Module, prefix: str) -> Iterator[NamedModule]:
    for name, module in root.named_modules():
        if module is not root:
            yield NamedModule(ModuleName(f"{prefix}.{name}.{type(module).__name__}"), module)
