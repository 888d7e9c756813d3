"""The threads that a session's function mode is on: the one that started it, and others while modules run there."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from probe_patch.runtime.capture.functions.mode import push, remove

if TYPE_CHECKING:
    from probe_patch.runtime.capture.functions.mode import FunctionMode


class _OnThisThread(threading.local):
    def __init__(self) -> None:
        self.has_mode = False


class ModeOnThreads:
    """A torch function mode is seen by the thread it was put on alone.

    SGLang runs its forwards on a thread of its own, DataParallel on one per device: there the mode comes with the
    outermost module and goes with it.
    """

    def __init__(self, mode: FunctionMode) -> None:
        self._mode = mode
        self._here = _OnThisThread()
        self._visited: set[int] = set()

    @property
    def is_here(self) -> bool:
        """Whether this thread is the one that started the recording, or a module is running on it."""
        return self._here.has_mode

    def begin(self) -> None:
        """On the thread that starts the recording."""
        push(self._mode)
        self._here.has_mode = True

    def end(self) -> bool:
        """On the thread that stops it. Whether the mode is now on none."""
        self._here.has_mode = False
        return remove(self._mode) and not self._visited

    def visit(self) -> None:
        """A module begins on this thread."""
        if not self._here.has_mode:
            push(self._mode)
            self._here.has_mode = True
            self._visited.add(threading.get_ident())

    def leave(self) -> None:
        """The outermost module has ended on this thread, with or without an exception."""
        if threading.get_ident() in self._visited:
            self._visited.discard(threading.get_ident())
            self._here.has_mode = False
            remove(self._mode)
