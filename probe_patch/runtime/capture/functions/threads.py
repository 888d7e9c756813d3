"""The threads that a session's function mode is on: the one that started it, and others while modules run there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probe_patch.runtime.capture.functions.mode import push, remove

if TYPE_CHECKING:
    from probe_patch.runtime.capture.functions.mode import FunctionMode
    from probe_patch.runtime.capture.nesting import Nesting


class ModeOnThreads:
    """A torch function mode is seen by the thread it was put on alone.

    SGLang runs its forwards on a thread of its own, DataParallel on one per device: there the mode comes with the
    outermost module and goes with it. What is called here is told of the current thread by its nesting.
    """

    def __init__(self, mode: FunctionMode) -> None:
        self._mode = mode
        self._visited: set[Nesting] = set()

    def begin(self, here: Nesting) -> None:
        """On the thread that starts the recording."""
        push(self._mode)
        here.has_mode = True

    def end(self, here: Nesting) -> bool:
        """On the thread that stops it. Whether the mode is now on none."""
        here.has_mode = False
        return remove(self._mode) and not self._visited

    def visit(self, here: Nesting) -> None:
        """A module begins on this thread, which does not have the mode."""
        push(self._mode)
        here.has_mode = here.is_visited = True
        self._visited.add(here)

    def leave(self, here: Nesting) -> None:
        """The outermost module has ended on this thread, which was visited, with or without an exception."""
        self._visited.discard(here)
        here.has_mode = here.is_visited = False
        remove(self._mode)
