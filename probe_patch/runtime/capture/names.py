"""The names that modules and functions have in a dump."""

from collections.abc import Sequence
from typing import TypeAlias

from torch import nn

Model: TypeAlias = nn.Module | Sequence[nn.Module]


class CallName:
    """What is called; its entries in a dump are numbered per label, from 0.

    Attributes:
        label: what stands first in all its entries.
        around_forward: what stands before and behind a call's number in the entry of its forward.
        around_backward: the same of its backward.
    """

    __slots__ = ("label",)
    around_forward = ("", "")
    around_backward = ("", "")

    def __init__(self, label: str) -> None:
        self.label = label

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CallName) and type(other) is type(self) and other.label == self.label

    def __hash__(self) -> int:
        return hash(self.label)

    def forward(self, call: int) -> str:
        """The entry of one forward."""
        raise NotImplementedError

    def backward(self, call: int) -> str:
        """The entry of that forward's backward."""
        raise NotImplementedError


class ModuleName(CallName):
    """``label`` is ``Module.{qualname}.{Class}``; of a root, ``Module.{Class}``."""

    __slots__ = ()
    around_forward = (".forward.", "")
    around_backward = (".backward.", "")

    def forward(self, call: int) -> str:
        return f"{self.label}.forward.{call}"

    def backward(self, call: int) -> str:
        return f"{self.label}.backward.{call}"

    def parameters_gradient(self, firing: int) -> str:
        """The entry of the gradients that one backward pass brings to the module's own parameters."""
        return f"{self.label}.parameters_grad.{firing}"


class FunctionName(CallName):
    """``label`` is ``{Prefix}.{function}``, such as ``Functional.linear`` or ``Tensor.__add__``."""

    __slots__ = ()
    around_forward = (".", ".forward")
    around_backward = (".", ".backward")

    def forward(self, call: int) -> str:
        return f"{self.label}.{call}.forward"

    def backward(self, call: int) -> str:
        return f"{self.label}.{call}.backward"


class NamedModule:
    """A module to record.

    Attributes:
        is_root: whether its call begins a forward pass: it is the model, or one of its virtual-pipeline chunks.
    """

    __slots__ = ("is_root", "module", "name")

    def __init__(self, name: ModuleName, module: nn.Module, is_root: bool) -> None:
        self.name = name
        self.module = module
        self.is_root = is_root


def named_modules(model: Model) -> list[NamedModule]:
    """Every module once, under the first of its names, a root before what is in it.

    A root has its class alone for a name; chunks of a list come with their index.
    """
    if isinstance(model, nn.Module):
        return [
            NamedModule(ModuleName(f"{path}.{type(module).__name__}"), module, module is model)
            for path, module in _below(model, "Module")
        ]
    roots = {id(root) for root in model}
    named: dict[int, NamedModule] = {}
    for index, root in enumerate(model):
        for path, module in _below(root, f"Module.{index}"):
            if id(module) not in named:
                name = ModuleName(f"{path}.{type(module).__name__}")
                named[id(module)] = NamedModule(name, module, id(module) in roots)
    return list(named.values())


def _below(root: nn.Module, prefix: str) -> list[tuple[str, nn.Module]]:
    """``root.named_modules()``, several times as fast; where a class has a way of its own, it is asked."""
    torchs = nn.Module.named_modules
    found: list[tuple[str, nn.Module]] = []
    seen: set[int] = set()
    waiting = [(prefix, root)]
    while waiting:
        path, module = one = waiting.pop()
        identity = id(module)
        if identity in seen:
            continue
        if type(module).named_modules is not torchs:
            return _as_it_says(root, prefix)
        seen.add(identity)
        found.append(one)
        children = module._modules
        if children:
            for name, child in reversed(children.items()):
                if child is not None:
                    waiting.append((f"{path}.{name}", child))
    return found


def _as_it_says(root: nn.Module, prefix: str) -> list[tuple[str, nn.Module]]:
    named: dict[int, tuple[str, nn.Module]] = {}
    for name, module in root.named_modules():
        named.setdefault(id(module), (f"{prefix}.{name}" if name else prefix, module))
    return list(named.values())
