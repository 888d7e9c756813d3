"""Takes the gradients that arrive at tensors which recorded calls have given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probe_patch.runtime.capture.moments import GradientNow
from probe_patch.runtime.capture.tensor_hooks import TensorHook

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor

    from probe_patch.runtime.capture.backward import Backward
    from probe_patch.runtime.capture.session import Session


class Awaited:
    """One call's output at which a gradient shall arrive, and the inputs of the call which it is as well.

    Attributes:
        later: the next one who awaits what arrives at the same tensor.
    """

    __slots__ = ("backward", "handed_on", "later", "output")

    def __init__(self, backward: Backward, output: int, handed_on: Sequence[int]) -> None:
        self.backward = backward
        self.output = output
        self.handed_on = handed_on
        self.later: Awaited | None = None


class Arrival(TensorHook):
    """The hook of one tensor: an output of one call, or of several that hand it on. It takes the first gradient alone:
    a later backward pass through the same graph brings others.

    Attributes:
        session: whose it is.
    """

    __slots__ = ("_awaited", "_latest", "session")

    def __init__(self, session: Session, awaited: Awaited) -> None:
        self.session = session
        self._awaited: Awaited | None = awaited
        self._latest: Awaited | None = awaited

    @property
    def backwards(self) -> Iterator[Backward]:
        """To which something may come from here."""
        awaited = self._awaited
        while awaited is not None:
            yield awaited.backward
            awaited = awaited.later

    def join(self, session: Session, awaited: Awaited) -> bool:
        """Let one more have what comes next. False where it is another recording's."""
        if session is not self.session:
            return False
        latest = self._latest
        if latest is None:
            self._awaited = awaited
        else:
            latest.later = awaited
        self._latest = awaited
        return True

    def __call__(self, gradient: Tensor) -> None:
        if self._awaited is not None:
            self.take(self.session, gradient)
            self._awaited = self._latest = None

    def _take(self, gradient: Tensor) -> None:
        session = self.session
        now = GradientNow(session.store.recorder, gradient)
        awaited = self._awaited
        while awaited is not None:
            try:
                _take(session, awaited, now)
            except Exception as error:
                session.store.problems.note("recording a gradient", error)
            awaited = awaited.later


def _take(session: Session, awaited: Awaited, gradient: GradientNow) -> None:
    backward, output, handed_on = awaited.backward, awaited.output, awaited.handed_on
    call = backward.call
    session.here().flowing = call.during
    if backward.is_taken is None:
        session.gradients.begin(backward)
    if backward.is_taken:
        if session.takes_inputs:
            backward.arrives(output, gradient.arrived(call, output))
        if handed_on and session.takes_outputs:
            for number in handed_on:
                backward.passes_on(number, gradient.passed_on(call, number))
    if backward.shares == 0:
        session.store.selection.end_backward(call)
