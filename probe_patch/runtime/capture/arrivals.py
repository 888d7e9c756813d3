"""Takes the gradients that arrive at tensors which recorded calls have given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probe_patch.runtime.capture.moments import GradientNow
from probe_patch.runtime.capture.tensor_hooks import GradientHook

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor

    from probe_patch.runtime.capture.backward import Backward
    from probe_patch.runtime.capture.session import Session


class Awaited:
    """One call's output at which a gradient shall arrive, and the inputs of the call which it is as well."""

    __slots__ = ("backward", "handed_on", "output")

    def __init__(self, backward: Backward, output: int, handed_on: Sequence[int]) -> None:
        self.backward = backward
        self.output = output
        self.handed_on = handed_on


class Arrival(GradientHook):
    """The hook of one tensor: an output of one call, or of several that hand it on. It takes the first gradient alone:
    a later backward pass through the same graph brings others."""

    __slots__ = ("_awaited",)

    def __init__(self, session: Session, awaited: Awaited) -> None:
        self._session = session
        self._awaited = [awaited]

    def if_on(self) -> Arrival | None:
        """Itself; None once neither the tensor nor its node is there to call it."""
        return None if self._hooks() is None else self

    @property
    def backwards(self) -> Iterator[Backward]:
        """To which something may come from here."""
        return (awaited.backward for awaited in self._awaited)

    def join(self, session: Session, awaited: Awaited) -> bool:
        """Let one more have what comes next. False where it is another recording's."""
        if session is not self._session:
            return False
        self._awaited.append(awaited)
        return True

    def __call__(self, gradient: Tensor) -> None:
        if self._awaited:
            self.take(gradient)
            self._awaited = []

    def _take(self, gradient: Tensor) -> None:
        session = self._session
        now = GradientNow(session.store.recorder, gradient)
        for awaited in self._awaited:
            try:
                _take(session, awaited, now)
            except Exception as error:  # noqa: PERF203
                session.store.problems.note("recording a gradient", error)


def _take(session: Session, awaited: Awaited, gradient: GradientNow) -> None:
    backward, output, handed_on = awaited.backward, awaited.output, awaited.handed_on
    call = backward.call
    session.nesting.flowing = call.during
    if session.gradients.takes(backward):
        if session.takes_inputs:
            backward.arrived[output] = gradient.arrived(call, output)
        if handed_on and session.takes_outputs:
            for number in handed_on:
                backward.passed_on[number] = gradient.passed_on(call, number)
    if backward.shares == 0:
        session.store.selection.end_backward(call)
