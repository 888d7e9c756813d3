"""One stretch of recording into a store, from a start to its stop."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from probe_patch.runtime.capture.nesting import ModuleCall, Nesting

if TYPE_CHECKING:
    from probe_patch.runtime.store import Store


PATIENCE: Final = 1.0
"""Seconds a hook waits for another thread's. Values can run their owner's code while they are recorded; if that waits
for this thread in turn, something must give way, and it is the recording."""


class Session:
    """What the hooks of one start share. Hooks hold ``store.lock`` while they record, and record only while it is open.

    Another thread may be about to call a hook that was just removed; it then finds the session closed. A forked child
    has the hooks too, but not the threads that may hold the lock, and records nothing.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.nesting = Nesting()
        self.is_open = True
        self._pid = os.getpid()

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

    def open_call(self, label: str, handled: BaseException | None) -> ModuleCall:
        """Begin the next forward of a module on this thread, inside the innermost open one."""
        call = self.store.open_call(label, self.nesting.innermost(), handled)
        self.nesting.enter(call)
        return call
