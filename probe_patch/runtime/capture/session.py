"""One stretch of recording into a store, from a start to its stop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probe_patch.runtime.capture.nesting import ModuleCall, Nesting

if TYPE_CHECKING:
    from probe_patch.runtime.store import Store


class Session:
    """What the hooks of one start share. Hooks hold ``store.lock`` while they record, and record only while it is open.

    Another thread may be about to call a hook that was just removed; it then finds the session closed.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.nesting = Nesting()
        self.is_open = True

    def close(self) -> None:
        """Returns once no hook is recording; from then on none does."""
        with self.store.lock:
            self.is_open = False

    def open_call(self, label: str, handled: BaseException | None) -> ModuleCall:
        """Begin the next forward of a module on this thread, inside the innermost open one."""
        call = self.store.open_call(label, self.nesting.innermost(), handled)
        self.nesting.enter(call)
        return call
