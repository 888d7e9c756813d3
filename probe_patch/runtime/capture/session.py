"""One stretch of recording into a store, from a start to its stop."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Final

from probe_patch.runtime.capture.gradients import Gradients
from probe_patch.runtime.capture.nesting import Call, Nesting

if TYPE_CHECKING:
    from probe_patch.runtime.capture.names import ModuleName
    from probe_patch.runtime.capture.wanted import Wanted
    from probe_patch.runtime.store import Store


PATIENCE: Final = 1.0
"""Seconds a hook waits for another thread's. Values can run their owner's code while they are recorded; if that waits
for this thread in turn, something must give way, and it is the recording."""


_ELSEWHERE: Final = (
    "modules ran on another thread than the one that started the recording; functions are recorded on that one only"
)


class Session:
    """What the hooks of one start share. Hooks hold ``store.lock`` while they record, and record only while it is open.

    Another thread may be about to call a hook that was just removed; it then finds the session closed. A forked child
    has the hooks too, but not the threads that may hold the lock, and records nothing.
    """

    def __init__(self, store: Store, wanted: Wanted) -> None:
        self.store = store
        self.wanted = wanted
        self.gradients = Gradients(self)
        self.nesting = Nesting()
        self.is_open = True
        self._pid = os.getpid()
        self._thread = threading.get_ident()

    def enter(self) -> bool:
        """Take the lock, to be given back with ``leave``; False, without the lock, where nothing is to be recorded."""
        if not self.is_open or os.getpid() != self._pid:
            return False
        if not self.store.lock.acquire(timeout=PATIENCE):
            self.store.problems.note("recording", "another thread was held up in its own recording for too long")
            return False
        if not self.is_open:
            self.leave()
            return False
        return True

    def leave(self) -> None:
        self.store.lock.release()

    def close(self) -> None:
        """Returns once no hook is recording; from then on none does."""
        if os.getpid() == self._pid:
            with self.store.lock:
                self.is_open = False
        self.is_open = False

    def open_module(self, name: ModuleName, handled: BaseException | None) -> Call:
        """Begin the next forward of a module on this thread, inside the innermost open one."""
        if self.wanted.functions is not None and threading.get_ident() != self._thread:
            self.store.problems.note("recording functions", _ELSEWHERE)
        call = self.store.open_call(name, self.nesting.innermost(), handled)
        self.nesting.enter(call)
        return call
