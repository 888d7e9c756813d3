"""The hooks of a recorded module and of its root, as objects that survive what people do to models."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import torch

if TYPE_CHECKING:
    from torch import nn

    from probe_patch.runtime.capture.names import ModuleName
    from probe_patch.runtime.capture.session import Session

_NOT_GIVEN: Final = object()


def absent_hook(*_: object) -> None:
    """What a copied or unpickled model has in the place of our hooks: a copy is not being recorded."""


class CallHook:
    """Shared by the hooks of one module. It never raises, never returns anything, and goes quiet when compiled.

    Forwards that run inside a backward pass are counted, not recorded: activation checkpointing repeats a forward
    there, and as a further call it would shift the numbers of all later ones.

    While a hook is being registered or removed, torch may call it on another thread without the keyword arguments,
    which come third. Such a call records nothing.
    """

    def __init__(self, session: Session, name: ModuleName) -> None:
        self._session = session
        self._name = name

    def __reduce__(self) -> tuple[Any, ...]:
        return _absent, ()


class BeforeForward(CallHook):
    """Opens the call and measures its inputs, which an in-place module is about to overwrite."""

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
        if torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None:
            return
        if kwargs is None or not self._session.enter():
            return
        try:
            if inside_backward():
                self._session.store.recomputed += 1
            else:
                self._record(args, kwargs)
        except Exception as error:
            self._session.store.problems.note("recording a module's inputs", error)
        finally:
            self._session.leave()

    def _record(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        call = self._session.open_module(self._name, sys.exc_info()[1])
        self._session.take_inputs(call, args, kwargs)


class AfterForward(CallHook):
    """Measures the outputs and closes the call; called too when the forward raised, then without an output."""

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: Any, output: Any = _NOT_GIVEN) -> None:
        if torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None:
            return
        if output is _NOT_GIVEN or inside_backward() or not self._session.enter():
            return
        try:
            self._record(module, output)
        except Exception as error:
            self._session.store.problems.note("recording a module's outputs", error)
        finally:
            self._session.leave()

    def _record(self, module: nn.Module, output: Any) -> None:
        call = self._session.nesting.leave(self._name)
        self._session.leave_thread()
        if call is None:
            return
        raised = sys.exc_info()[1] is not call.handled
        call.handled = None
        if not raised:
            self._session.take_output(call, output)
        self._session.take_parameters(call, module)
        self._session.store.close_call(call)


class BeforePass(CallHook):
    """On the root of the model and on other modules that are not recorded: a pass begins, maybe inside another one."""

    def __call__(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        if not torch.compiler.is_compiling() and not inside_backward():
            self._session.visit_thread()
            self._session.nesting.enter_pass(sys._getframe(1))


class AfterPass(CallHook):
    """On the same modules: a pass is over, however it ended."""

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        if not torch.compiler.is_compiling() and not inside_backward():
            self._session.nesting.leave_pass()
            self._session.leave_thread()


def inside_backward() -> bool:
    """Whether autograd is running a backward pass on this thread."""
    return torch._C._current_graph_task_id() != -1


def _absent() -> Any:
    return absent_hook
