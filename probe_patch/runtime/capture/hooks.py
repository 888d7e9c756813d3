"""The hooks of a recorded module and of its root, as objects that survive what people do to models."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from torch._C import _current_graph_task_id, _get_tracing_state
from torch.compiler import is_compiling

from probe_patch.runtime.capture.module_calls import HookOfCalls

if TYPE_CHECKING:
    from torch import nn

    from probe_patch.runtime.capture.names import ModuleName
    from probe_patch.runtime.capture.session import Session


class CallHook:
    """Shared by the hooks of one module. It never raises, never returns anything, and goes quiet when compiled.

    Forwards that run inside a backward pass are counted, not recorded: activation checkpointing repeats a forward
    there, and as a further call it would shift the numbers of all later ones.

    While a hook before a forward is being registered or removed, torch may call it on another thread without the
    keyword arguments. Such a call records nothing.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        """Where ``Unhooked`` could not help: a copy has something of Python's own that does nothing."""
        return getattr, (nullcontext(), "__exit__")


class BeforeForward(CallHook, HookOfCalls):
    """Opens the call and measures its inputs, which an in-place module is about to overwrite."""

    __slots__ = ()

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
        if not is_traced() and kwargs is not None:
            self.calls.begin(module, args, kwargs)


class AfterForward(CallHook, HookOfCalls):
    """Measures the outputs and closes the call; called too when the forward raised, then without an output."""

    __slots__ = ()

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        if not is_traced():
            self.calls.end(module, output)


class BeforePass(CallHook):
    """On a root of the model: a pass begins, maybe inside another one."""

    def __init__(self, session: Session, name: ModuleName) -> None:
        self._session = session
        self._name = name

    def __call__(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        if not is_no_pass():
            self._session.enter_pass(self._name)


class BeforeVisit(CallHook):
    """On a module that is not recorded itself: the functions that run inside it may be."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __call__(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        if not is_no_pass():
            self._session.enter_visit()


class AfterPass(CallHook):
    """On a root of the model, or a module that is not recorded: a pass or visit is over, however it ended."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        if not is_no_pass():
            self._session.leave_visit()


def is_traced() -> bool:
    """Whether torch.compile or torch.jit.trace is looking at what runs."""
    return is_compiling() or _get_tracing_state() is not None


def is_no_pass() -> bool:
    """Whether what runs is compiled, traced or recomputed."""
    return is_compiling() or _get_tracing_state() is not None or _current_graph_task_id() != -1


def inside_backward() -> bool:
    """Whether autograd is running a backward pass on this thread."""
    return _current_graph_task_id() != -1
