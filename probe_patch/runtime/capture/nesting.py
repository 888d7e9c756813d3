"""Which module calls are open, per thread: the parents in construct.json."""

import threading
from types import FrameType
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_patch.runtime.capture.forms import Record
    from probe_patch.runtime.capture.gradients import Backward
    from probe_patch.runtime.capture.names import CallName


class ForwardPass:
    """One outermost pass through a root.

    Attributes:
        micro_batch: how many passes through this root the dump holds before it.
        has_gradients: whether it began with gradients enabled, so that something may flow back through it.
    """

    __slots__ = ("has_gradients", "micro_batch")

    def __init__(self, micro_batch: int, has_gradients: bool) -> None:
        self.micro_batch = micro_batch
        self.has_gradients = has_gradients


BEFORE_ANY_PASS: Final = ForwardPass(0, has_gradients=False)


class Call:
    """One forward of one module or function, from its start to its end.

    Attributes:
        name: what is called.
        entry: the call's name in the dump.
        backward: the name of its backward in the dump.
        parent: the module call that it runs in.
        during: the pass that it is a part of; outside of any, the last one that began.
        handled: the exception the thread was already handling when the call began.
        is_taken: whether its forward is recorded.
        record: what is known of it so far, by dump.json's keys.
        flow: what flows back through it; None where nothing will, or where gradients are not recorded.
    """

    __slots__ = ("backward", "during", "entry", "flow", "handled", "is_taken", "name", "parent", "record")

    def __init__(
        self,
        name: "CallName",
        number: int,
        parent: "Call | None",
        during: ForwardPass,
        handled: BaseException | None,
    ) -> None:
        self.name = name
        self.entry = name.forward(number)
        self.backward = name.backward(number)
        self.parent = parent
        self.during = during
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


class _Running(NamedTuple):
    """A running pass through a root: where on the call stack, from the bottom, and the identity of its frame."""

    height: int
    frame: int


class Nesting(threading.local):
    """The open calls of the current thread, outermost first, and the passes through the model that they are in.

    Attributes:
        latest: the last outermost pass that began on this thread.
        flowing: the pass of the last call to which a gradient arrived on this thread.
        repeated: the modules that a backward on this thread is running again, and what will flow back through them.
    """

    def __init__(self) -> None:
        self._open: list[Call] = []
        self._running: list[_Running] = []
        self.latest: ForwardPass | None = None
        self.flowing: ForwardPass | None = None
        self.repeated: list[tuple[CallName, Backward | None]] = []

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

    def enter_pass(self, frame: FrameType) -> bool:
        """A pass through a root begins in this frame. Whether it is an outermost one, where nothing can be open.

        torch calls no hook when a KeyboardInterrupt or SystemExit leaves a module, so a pass counts as running only
        while its frame is on the stack.
        """
        around = _frames_from_the_bottom(frame.f_back)
        self._running = [one for one in self._running if one.height < len(around) and around[one.height] == one.frame]
        is_outermost = not self._running
        if is_outermost:
            self._open.clear()
        self._running.append(_Running(len(around), id(frame)))
        return is_outermost

    def leave_pass(self) -> None:
        """The innermost pass is over."""
        if self._running:
            self._running.pop()


def _frames_from_the_bottom(frame: FrameType | None) -> list[int]:
    frames: list[int] = []
    while frame is not None:
        frames.append(id(frame))
        frame = frame.f_back
    return frames[::-1]
