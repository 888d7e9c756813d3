"""The names that modules have in a dump: ``Module.{qualified name}.{class}``."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from torch import nn

Model: TypeAlias = nn.Module | Sequence[nn.Module]


@dataclass(frozen=True)
class NamedModule:
    """A module to record. ``label`` is ``Module.{qualname}.{Class}``, to which a call adds ``.forward.{k}``."""

    label: str
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


def forward_entry(label: str, call: int) -> str:
    """The entry of the ``call``-th forward, from 0, of a module in one dump."""
    return f"{label}.forward.{call}"


def _below(root: nn.Module, prefix: str) -> Iterator[NamedModule]:
    for name, module in root.named_modules():
        if module is not root:
            yield NamedModule(f"{prefix}.{name}.{type(module).__name__}", module)
