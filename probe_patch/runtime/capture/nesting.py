"""Which module calls are open, per thread: the parents in construct.json."""

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from probe_patch.runtime.capture.forms import Record


class ModuleCall:
    """One forward of one module, from its start to its end.

    Attributes:
        label: the module's name in the dump.
        entry: the call's name in the dump.
        handled: the exception the thread was already handling when the call began.
        record: what is known of it so far, by dump.json's keys.
    """

    __slots__ = ("entry", "handled", "label", "record")

    def __init__(self, label: str, entry: str, handled: BaseException | None) -> None:
        self.label = label
        self.entry = entry
        self.handled = handled
        self.record: dict[str, Record] = {}


class Nesting(threading.local):
    """The open calls of the current thread, outermost first."""

    def __init__(self) -> None:
        self._open: list[ModuleCall] = []

    def innermost(self) -> str | None:
        """The entry of the innermost open call."""
        return self._open[-1].entry if self._open else None

    def enter(self, call: ModuleCall) -> None:
        self._open.append(call)

    def leave(self, label: str) -> ModuleCall | None:
        """Close the innermost open call of this module, and whatever was left open inside it."""
        for index in range(len(self._open) - 1, -1, -1):
            if self._open[index].label == label:
                call = self._open[index]
                del self._open[index:]
                return call
        return None

    def clear(self) -> None:
        """A new pass through the model begins: nothing can be open."""
        self._open.clear()
