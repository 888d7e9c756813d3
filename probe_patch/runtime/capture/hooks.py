"""The hooks of a recorded module and of its root, as objects that survive what people do to models."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from torch.compiler import is_compiling

from probe_patch.runtime.capture.around_forwards import BeginsCall, BeginsPass, BeginsVisit, EndsCall, EndsVisit

try:
    from probe_patch.runtime.capture.quick_hooks import call_as_base
except ImportError:

    def call_as_base(kind: type) -> None:
        """Where nothing is compiled, or torch has no such function, Python calls what is written in Python."""


if TYPE_CHECKING:
    from torch import nn


class CallHook:
    """Shared by the hooks of one module. It never raises, never returns anything, and goes quiet when compiled.

    Forwards that run inside a backward pass are counted, not recorded: activation checkpointing repeats a forward
    there, and as a further call it would shift the numbers of all later ones.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        """Where ``Unhooked`` could not help: a copy has something of Python's own that does nothing."""
        return getattr, (nullcontext(), "__exit__")


class BeforeForward(CallHook, BeginsCall):
    __slots__ = ()

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
        if not is_compiling():
            super().__call__(module, args, kwargs)


class AfterForward(CallHook, EndsCall):
    __slots__ = ()

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        if not is_compiling():
            super().__call__(module, args, output)


class BeforePass(CallHook, BeginsPass):
    __slots__ = ()

    def __call__(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        if not is_compiling():
            super().__call__(module, args)


class BeforeVisit(CallHook, BeginsVisit):
    __slots__ = ()

    def __call__(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        if not is_compiling():
            super().__call__(module, args)


class AfterPass(CallHook, EndsVisit):
    __slots__ = ()

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        if not is_compiling():
            super().__call__(module, args, output)


for kind in (BeforeForward, AfterForward, BeforePass, BeforeVisit, AfterPass):
    call_as_base(kind)
