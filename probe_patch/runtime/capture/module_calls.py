"""Records the calls of one module: what it was given, what it gave, that it raised."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from torch._C import _current_graph_task_id

from probe_patch.runtime.capture.frames import outside
from probe_patch.runtime.capture.unchanged import Unchanged, nothing_comes_between

if TYPE_CHECKING:
    from torch import nn

    from probe_patch.runtime.capture.names import ModuleName
    from probe_patch.runtime.capture.parameters import OwnParameters
    from probe_patch.runtime.capture.session import Session

_exc_info: Final = sys.exc_info


class ModuleCalls:
    """The calls of one module in one session.

    Forwards that run inside a backward pass are counted, not recorded: activation checkpointing repeats a forward
    there, and as a further call it would shift the numbers of all later ones.
    """

    def __init__(self, session: Session, name: ModuleName, parameters: OwnParameters | None) -> None:
        self._session = session
        self._name = name
        self._parameters = parameters

    def begin(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Open the call and measure its inputs, which an in-place module is about to overwrite."""
        session = self._session
        if not session.enter():
            return
        try:
            self._begin(session, module, args, kwargs)
        except Exception as error:
            session.store.problems.note("recording a module's inputs", error)
        finally:
            session.leave()

    def end(self, module: nn.Module, output: Any) -> None:
        """Measure the outputs and close the call; where the forward raised, without an output."""
        session = self._session
        if not session.enter():
            return
        try:
            if _current_graph_task_id() == -1:
                self._end(session, module, output)
            elif session.takes_backward:
                session.recomputations.end(session, self._name, output)
        except Exception as error:
            session.store.problems.note("recording a module's outputs", error)
        finally:
            session.leave()

    def _begin(self, session: Session, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        has_gradients = session.ran_with()
        if self._parameters is not None and has_gradients:
            self._parameters.find_stand_ins(module)
        if _current_graph_task_id() != -1:
            session.store.recomputed += 1
            if session.takes_backward:
                session.recomputations.begin(session, self._name, args)
            return
        call = session.open_module(self._name, _exc_info()[1])
        frame = outside()
        call.frame = id(frame)
        if session.may_meet_again and nothing_comes_between(module):
            call.is_sealed = True
            unchanged = session.here().unchanged = Unchanged(frame)
            session.store.recorder.known = unchanged.in_hook(frame)
        session.take_inputs(call, args, kwargs)
        if session.takes_backward and not has_gradients:
            session.recomputations.expect(session, call)

    def _end(self, session: Session, module: nn.Module, output: Any) -> None:
        nesting = session.here()
        call = nesting.leave(self._name)
        session.leave_thread(nesting)
        if call is None:
            return
        unchanged, nesting.unchanged = nesting.unchanged, None
        if unchanged is not None:
            session.store.recorder.known = unchanged.in_hook(outside())
        raised = _exc_info()[1] is not call.handled
        call.handled = None
        if not raised:
            session.take_output(call, output)
        session.take_parameters(call, module)
        session.store.close_call(call)
