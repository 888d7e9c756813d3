"""Which module calls are open, per thread: the parents in construct.json."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from probe_patch.runtime.capture.frames import outside

if TYPE_CHECKING:
    from types import FrameType
    from weakref import ref

    from probe_patch.runtime.capture.backward import Backward
    from probe_patch.runtime.capture.forwards import Call, ForwardPass
    from probe_patch.runtime.capture.names import CallName
    from probe_patch.runtime.capture.session import Session
    from probe_patch.runtime.capture.unchanged import Unchanged


class _Here(threading.local):
    """All nestings that may have something open on the current thread."""

    def __init__(self) -> None:
        self.nestings: list[Nesting] = []


_here: Final = _Here()


class Nestings(threading.local):
    """The nesting of each thread, which is made when the thread first asks for it.

    Attributes:
        here: that of the current thread.
    """

    def __init__(self, session: ref[Session], passes: list[list[FrameType]]) -> None:
        self.here = Nesting(session, passes)


class Nesting:
    """The open calls of the current thread, outermost first, and the passes through the model that they are in.

    Attributes:
        is_in_function: whether a function is being recorded on this thread; what it calls in turn is not.
        latest: the last outermost pass that began on this thread.
        flowing: the pass of the last call to which a gradient arrived on this thread.
        repeated: the modules that a backward on this thread is running again, and what will flow back through them.
        unchanged: of the innermost open call, where it is one in which nothing of the run's own code comes between.
        is_in_a_function: whether the outermost open call runs, without gradients, inside an autograd function.
        has_mode: whether the session's function mode is on this thread.
        is_visited: whether it is so only as long as a module runs here.
    """

    def __init__(self, session: ref[Session], passes: list[list[FrameType]]) -> None:
        """For one thread.

        Args:
            session: whose it is; what the session holds must not keep it.
            passes: those that run on each thread. A frame keeps a whole call stack alive: the session empties them.
        """
        self._session = session
        # It is made on its thread.
        self._here = _here.nestings
        self._open: list[Call] = []
        self._running: list[FrameType] = []
        passes.append(self._running)
        self.latest: ForwardPass | None = None
        self.flowing: ForwardPass | None = None
        self.repeated: list[tuple[CallName, Backward | None]] = []
        self.is_in_a_function = False
        self.is_in_function = False
        self.has_mode = False
        self.is_visited = False
        self.unchanged: Unchanged | None = None

    @property
    def is_in_module(self) -> bool:
        """Whether a module of this session's model is running on this thread."""
        return self.is_in_a_module()

    def is_in_a_module(self) -> bool:
        return bool(self._open or self._running)

    def is_in_anothers_module(self) -> bool:
        """Whether only modules of other sessions' models are running on this thread."""
        if self._open or self._running:
            return False
        # Cython compiles no generator inside a method that has a declaration.
        for other in self._here:  # noqa: SIM110
            if other._runs():
                return True
        return False

    def is_of_open_session(self) -> bool:
        session = self._session()
        return session is not None and session.is_open

    def _runs(self) -> bool:
        if self._running:
            self._drop_ended(outside())
            if not self._running:
                self._open.clear()
        return self.is_in_a_module() and self.is_of_open_session()

    def innermost(self) -> Call | None:
        """The innermost open call."""
        return self._open[-1] if self._open else None

    def enter(self, call: Call) -> None:
        self._open.append(call)
        self._is_here()

    def leave(self, name: CallName) -> Call | None:
        """Close the innermost open call of this module, and whatever was left open inside it."""
        for index in range(len(self._open) - 1, -1, -1):
            call = self._open[index]
            if call.name is name:
                while len(self._open) > index:
                    self._open.pop()
                self._may_be_gone()
                return call
        return None

    def enter_pass(self, frame: FrameType) -> bool:
        """A pass through a root, or through a module that is not recorded itself, begins in this frame.
        Whether it is an outermost one, where nothing can be open.

        torch calls no hook when a KeyboardInterrupt or SystemExit leaves a module, so a pass counts as running only
        while its frame is on the stack.
        """
        self._drop_ended(frame.f_back)
        is_outermost = not self._running
        if is_outermost:
            self._open.clear()
        self._running.append(frame)
        self._is_here()
        return is_outermost

    def leave_pass(self) -> None:
        """The innermost pass is over."""
        if self._running:
            self._running.pop()
        self._may_be_gone()

    def _drop_ended(self, frame: FrameType | None) -> None:
        # Where the innermost is on the stack, those around it are.
        while self._running and not _is_around(self._running[-1], frame):
            self._running.pop()

    def _is_here(self) -> None:
        if self not in self._here:
            self._here[:] = [*[other for other in self._here if other.is_of_open_session()], self]

    def _may_be_gone(self) -> None:
        if not self.is_in_a_module() and self in self._here:
            self._here.remove(self)


def _is_around(frame: FrameType, inner: FrameType | None) -> bool:
    """Whether a frame is on the call stack that ends with ``inner``."""
    while inner is not None and inner is not frame:
        inner = inner.f_back
    return inner is frame
