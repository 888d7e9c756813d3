"""Modules that run compiled: what is inside one runs without modules, and a hook there would only have it compiled
again with every start, until torch gives up and runs it uncompiled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

if TYPE_CHECKING:
    from probe_patch.runtime.capture.names import Model


def inside_compiled(model: Model) -> set[int]:
    """The identities of the modules that run only inside compiled ones."""
    roots = [model] if isinstance(model, nn.Module) else list(model)
    outside: set[int] = set()
    waiting = [root for root in roots if not is_compiled_in_place(root)]
    while waiting:
        module = waiting.pop()
        if id(module) not in outside:
            outside.add(id(module))
            if not is_wrapper(module):
                waiting += [child for child in module.children() if not is_compiled_in_place(child)]
    return {id(module) for root in roots for module in root.modules()} - outside


def is_compiled(module: nn.Module) -> bool:
    """Whether something of it runs compiled, by either of torch's two ways."""
    return is_compiled_in_place(module) or is_wrapper(module)


def is_wrapper(module: nn.Module) -> bool:
    """Whether ``torch.compile(module)`` made it; it is called as any module, and hands on to compiled code."""
    return type(module).__name__ == "OptimizedModule" and "_orig_mod" in module._modules


def is_compiled_in_place(module: nn.Module) -> bool:
    """Whether ``module.compile()`` was called; its hooks are then part of what is compiled."""
    return getattr(module, "_compiled_call_impl", None) is not None
