"""The names that modules and functions have in a dump."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol, TypeAlias

from torch import nn

Model: TypeAlias = nn.Module | Sequence[nn.Module]


class CallName(Protocol):
    """What is called; its entries in a dump are numbered per label, from 0.

    Attributes:
        around_forward: what stands before and behind that number, between the label and the end of a forward's entry.
        around_backward: the same of a backward's.
    """

    around_forward: ClassVar[tuple[str, str]]
    around_backward: ClassVar[tuple[str, str]]

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

    around_forward: ClassVar = (".forward.", "")
    around_backward: ClassVar = (".backward.", "")
    label: str

    def forward(self, call: int) -> str:
        return _entry(self.label, self.around_forward, call)

    def backward(self, call: int) -> str:
        return _entry(self.label, self.around_backward, call)

    def parameters_gradient(self, firing: int) -> str:
        """The entry of the gradients that one backward pass brings to the module's own parameters."""
        return f"{self.label}.parameters_grad.{firing}"


@dataclass(frozen=True)
class FunctionName:
    """``label`` is ``{Prefix}.{function}``, such as ``Functional.linear`` or ``Tensor.__add__``."""

    around_forward: ClassVar = (".", ".forward")
    around_backward: ClassVar = (".", ".backward")
    label: str

    def forward(self, call: int) -> str:
        return _entry(self.label, self.around_forward, call)

    def backward(self, call: int) -> str:
        return _entry(self.label, self.around_backward, call)


def _entry(label: str, around: tuple[str, str], call: int) -> str:
    before, behind = around
    return f"{label}{before}{call}{behind}"


class NamedModule(NamedTuple):
    """A module to record.

    Attributes:
        path: its name, without its class.
        is_root: whether its call begins a forward pass: it is the model, or one of its virtual-pipeline chunks.
    """

    path: str
    module: nn.Module
    is_root: bool

    @property
    def name(self) -> ModuleName:
        return ModuleName(f"{self.path}.{type(self.module).__name__}")


def named_modules(model: Model) -> Iterator[NamedModule]:
    """Every module once, under the first of its names, a root before what is in it.

    A root has its class alone for a name; chunks of a list come with their index.
    """
    chunks = [(model, "Module")] if isinstance(model, nn.Module) else [(m, f"Module.{i}") for i, m in enumerate(model)]
    roots = {id(root) for root, _ in chunks}
    seen: set[int] = set()
    for root, prefix in chunks:
        for path, module in _below(root, prefix):
            if id(module) not in seen:
                seen.add(id(module))
                yield NamedModule(path, module, id(module) in roots)


def _below(root: nn.Module, prefix: str) -> list[tuple[str, nn.Module]]:
    """``root.named_modules()``, several times as fast; where a class has a way of its own, torch is asked."""
    found: list[tuple[str, nn.Module]] = []
    seen: set[int] = set()
    waiting = [(prefix, root)]
    while waiting:
        path, module = one = waiting.pop()
        if id(module) in seen:
            continue
        if type(module).named_modules is not nn.Module.named_modules:
            return [(f"{prefix}.{name}" if name else prefix, module) for name, module in root.named_modules()]
        seen.add(id(module))
        found.append(one)
        children = module._modules
        if children:
            waiting += [(f"{path}.{name}", child) for name, child in reversed(children.items()) if child is not None]
    return found
