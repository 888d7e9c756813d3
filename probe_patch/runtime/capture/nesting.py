"""Which module calls are open, per thread: the parents in construct.json."""

import threading
from types import FrameType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_patch.runtime.capture.forms import Record
    from probe_patch.runtime.capture.gradients import Backward
    from probe_patch.runtime.capture.names import CallName


class Call:
    """One forward of one module or function, from its start to its end.

    Attributes:
        name: what is called.
        entry: the call's name in the dump.
        backward: the name of its backward in the dump.
        parent: the module call that it runs in.
        handled: the exception the thread was already handling when the call began.
        is_taken: whether its forward is recorded.
        record: what is known of it so far, by dump.json's keys.
        flow: what flows back through it; None where nothing will, or where gradients are not recorded.
    """

    __slots__ = ("backward", "entry", "flow", "handled", "is_taken", "name", "parent", "record")

    def __init__(self, name: "CallName", number: int, parent: "Call | None", handled: BaseException | None) -> None:
        self.name = name
        self.entry = name.forward(number)
        self.backward = name.backward(number)
        self.parent = parent
        self.handled = handled
        self.is_taken = True
        self.flow: Backward | None = None
        self.record: dict[str, Record] = {}

    def around(self) -> "Iterator[Call]":
        """The module calls that it runs in, innermost first."""
        call = self.parent
        while call is not None:
            yield call
            call = call.parent


class _Pass(NamedTuple):
    """A running pass through a root: where on the call stack, from the bottom, and the identity of its frame."""

    height: int
    frame: int


class Nesting(threading.local):
    """The open calls of the current thread, outermost first, and the passes through the model that they are in."""

    def __init__(self) -> None:
        self._open: list[Call] = []
        self._passes: list[_Pass] = []

    def innermost(self) -> Call | None:
        """The innermost open call."""
        return self._open[-1] if self._open else None

    def enter(self, call: Call) -> None:
        self._open.append(call)

    def leave(self, name: "CallName") -> Call | None:
        """Close the innermost open call of this module, and whatever was left open inside it."""
        for index in range(len(self._open) - 1, -1, -1):
            if self._open[index].name is name:
                call = self._open[index]
                del self._open[index:]
                return call
        return None

    def enter_pass(self, frame: FrameType) -> None:
        """A pass through a root begins in this frame. Unless another one is running around it, nothing can be open.

        torch calls no hook when a KeyboardInterrupt or SystemExit leaves a module, so a pass counts as running only
        while its frame is on the stack.
        """
        around = _frames_from_the_bottom(frame.f_back)
        self._passes = [one for one in self._passes if one.height < len(around) and around[one.height] == one.frame]
        if not self._passes:
            self._open.clear()
        self._passes.append(_Pass(len(around), id(frame)))

    def leave_pass(self) -> None:
        """The innermost pass is over."""
        if self._passes:
            self._passes.pop()


def _frames_from_the_bottom(frame: FrameType | None) -> list[int]:
    frames: list[int] = []
    while frame is not None:
        frames.append(id(frame))
        frame = frame.f_back
    return frames[::-1]
