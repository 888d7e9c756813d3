"""A gradient at one moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from probe_patch.runtime.capture.forms import Record
    from probe_patch.runtime.capture.forwards import Call
    from probe_patch.runtime.capture.records import Recorder


class GradientNow:
    """A gradient as it is right now: it is looked at once, for all the entries that it is recorded in now.

    Made and used up in one go, while nothing of the run can come between.
    """

    __slots__ = ("_gradient", "_record", "_recorder")

    def __init__(self, recorder: Recorder, gradient: Tensor) -> None:
        self._recorder = recorder
        self._gradient = gradient
        self._record: Record = None

    def arrived(self, call: Call, number: int) -> Record:
        """Of one of a call's outputs: a part of its backward's ``input``."""
        record: Record = None if self._record is None else self._recorder.again(self._record)
        if record is None:
            record = self._record = self._recorder.arrived(call, number, self._gradient)
        return record

    def passed_on(self, call: Call, number: int) -> Record:
        """Of one of a call's inputs: a part of its backward's ``output``."""
        record: Record = None if self._record is None else self._recorder.again(self._record)
        if record is None:
            record = self._record = self._recorder.passed_on(call, number, self._gradient)
        return record
