"""Modules that ran without gradients inside a pass that has them: reentrant checkpointing repeats them, with gradients,
in the backward, and what flows back through the repetition is the gradient of the call."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import torch

if TYPE_CHECKING:
    from probe_patch.runtime.capture.backward import Backward
    from probe_patch.runtime.capture.forwards import Call
    from probe_patch.runtime.capture.names import CallName
    from probe_patch.runtime.capture.session import Session

AMBIGUOUS: Final = (
    "a module ran several times without gradients in one pass, and a backward repeated one of these forwards; it "
    "cannot be told which one, so {name} and its like are left out"
)
FUNCTIONS: Final = "functions inside reentrant checkpointing have no gradients here; modules have"


class Recomputations:
    """The calls of one session that a backward may repeat. As with ``Gradients``, the session comes with each call."""

    def __init__(self) -> None:
        self._waiting: dict[CallName, list[Call]] = {}

    def expect(self, session: Session, call: Call) -> None:
        """A module is called without gradients."""
        if session.ran_in_inference_mode:
            return
        nesting = session.here()
        if call.parent is None:
            nesting.is_in_a_function = not call.during.has_gradients and _is_in_a_function()
        if call.during.has_gradients or nesting.is_in_a_function:
            self._waiting.setdefault(call.name, []).append(call)

    def begin(self, session: Session, name: CallName, args: tuple[Any, ...]) -> None:
        """A backward calls a module. Each ``begin`` has its ``end``."""
        session.here().repeated.append((name, self._flow(session, name, args)))

    def end(self, session: Session, name: CallName, output: object) -> None:
        """The module is done; ``output`` is None if it raised."""
        repeated = session.here().repeated
        while repeated:
            other, flow = repeated.pop()
            if other is name:
                if flow is not None:
                    session.gradients.after(session, flow, output)
                return

    def _flow(self, session: Session, name: CallName, args: tuple[Any, ...]) -> Backward | None:
        waiting = self._waiting.get(name)
        if not waiting or not session.ran_with_gradients:
            return None
        flowing = session.here().flowing
        fitting = [call for call in waiting if flowing is None or call.during is flowing]
        problems = session.store.problems
        if len(fitting) > 1:
            problems.note("recording the gradients of a recomputed module", AMBIGUOUS.format(name=name.backward(0)))
        if len(fitting) != 1:
            return None
        if session.wanted.functions is not None:
            problems.note("recording the gradients of recomputed functions", FUNCTIONS)
        waiting.remove(fitting[0])
        return session.gradients.before(session, fitting[0], args)


def _is_in_a_function() -> bool:
    """Whether the forward of an autograd function, such as reentrant checkpointing is, is running on this thread."""
    frame = sys._getframe(1).f_back
    while frame is not None:
        code = frame.f_code
        if (
            code.co_name == "forward"
            and code.co_argcount
            and isinstance(frame.f_locals.get(code.co_varnames[0]), torch.autograd.function.FunctionCtx)
        ):
            return True
        frame = frame.f_back
    return False
