"""The hooks of a recorded module and of its root, as objects that survive what people do to models."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final

from torch._C import _current_graph_task_id, _get_tracing_state
from torch.compiler import is_compiling

from probe_patch.runtime.capture.unchanged import Unchanged, nothing_comes_between

if TYPE_CHECKING:
    from torch import nn

    from probe_patch.runtime.capture.names import ModuleName
    from probe_patch.runtime.capture.parameters import OwnParameters
    from probe_patch.runtime.capture.session import Session

_NOT_GIVEN: Final = object()


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
        """Where ``Unhooked`` could not help: a copy has something of Python's own that does nothing."""
        return getattr, (nullcontext(), "__exit__")


class BeforeForward(CallHook):
    """Opens the call and measures its inputs, which an in-place module is about to overwrite."""

    def __init__(self, session: Session, name: ModuleName, parameters: OwnParameters | None) -> None:
        super().__init__(session, name)
        self._parameters = parameters

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
        if is_traced():
            return
        if kwargs is None or not self._session.enter():
            return
        try:
            self._record(module, args, kwargs)
        except Exception as error:
            self._session.store.problems.note("recording a module's inputs", error)
        finally:
            self._session.leave()

    def _record(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        session = self._session
        has_gradients = session.ran_with_gradients
        if self._parameters is not None and has_gradients:
            self._parameters.find_stand_ins(module)
        if inside_backward():
            session.store.recomputed += 1
            if session.wanted.backward:
                session.recomputations.begin(self._name, args)
            return
        call = session.open_module(self._name, sys.exc_info()[1])
        frame = sys._getframe(2)
        call.frame = id(frame)
        if session.may_meet_again and nothing_comes_between(module):
            unchanged = session.nesting.unchanged = Unchanged(frame)
            session.store.recorder.known = unchanged.in_hook(frame)
        session.take_inputs(call, args, kwargs)
        if session.wanted.backward and not has_gradients:
            session.recomputations.expect(call)


class AfterForward(CallHook):
    """Measures the outputs and closes the call; called too when the forward raised, then without an output."""

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: Any, output: Any = _NOT_GIVEN) -> None:
        if is_traced():
            return
        if output is _NOT_GIVEN or not self._session.enter():
            return
        try:
            if not inside_backward():
                self._record(module, output)
            elif self._session.wanted.backward:
                self._session.recomputations.end(self._name, output)
        except Exception as error:
            self._session.store.problems.note("recording a module's outputs", error)
        finally:
            self._session.leave()

    def _record(self, module: nn.Module, output: Any) -> None:
        session = self._session
        call = session.nesting.leave(self._name)
        session.leave_thread()
        if call is None:
            return
        unchanged, session.nesting.unchanged = session.nesting.unchanged, None
        if unchanged is not None:
            session.store.recorder.known = unchanged.in_hook(sys._getframe(2))
        raised = sys.exc_info()[1] is not call.handled
        call.handled = None
        if not raised:
            session.take_output(call, output)
        session.take_parameters(call, module)
        session.store.close_call(call)


class BeforePass(CallHook):
    """On a root of the model: a pass begins, maybe inside another one."""

    def __call__(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        if is_no_pass():
            return
        self._session.visit_thread()
        if not self._session.nesting.enter_pass(sys._getframe(1)) or not self._session.enter():
            return
        try:
            self._session.begin_pass(self._name)
        finally:
            self._session.leave()


class BeforeVisit(CallHook):
    """On a module that is not recorded itself: the functions that run inside it may be."""

    def __call__(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        if not is_no_pass():
            self._session.visit_thread()
            self._session.nesting.enter_pass(sys._getframe(1))


class AfterPass(CallHook):
    """On a root of the model, or a module that is not recorded: a pass or visit is over, however it ended."""

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        if not is_no_pass():
            self._session.nesting.leave_pass()
            self._session.leave_thread()


def is_traced() -> bool:
    """Whether torch.compile or torch.jit.trace is looking at what runs."""
    return is_compiling() or _get_tracing_state() is not None


def is_no_pass() -> bool:
    """Whether what runs is compiled, traced or recomputed."""
    return is_compiling() or _get_tracing_state() is not None or _current_graph_task_id() != -1


def inside_backward() -> bool:
    """Whether autograd is running a backward pass on this thread."""
    return _current_graph_task_id() != -1
