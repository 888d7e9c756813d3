"""Python's garbage collector while something is recorded.

It looks for cycles whenever some hundreds of objects more have come than gone, and at all objects of the process when
enough of them have stayed. Records come by the ten thousand and stay until the stop, none of them in a cycle: the
collector would run several times as often as without them, and find nothing. While they pile up, its youngest
generation may therefore grow larger, so that it runs about as often as it did.
"""

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Final

FACTOR: Final = 32
"""Of what is allocated in a step that is recorded, about as much is ours, for each part that is the run's."""

_MOST: Final = 1 << 30


class Patience:
    """Of one process: however many recordings run at once, the threshold is raised once."""

    def __init__(self) -> None:
        # What is let go of while we allocate may call us back.
        self._lock = threading.RLock()
        self._recordings = 0
        self._before = self._raised = gc.get_threshold()

    def begin(self, recording: object) -> Callable[[], object]:
        """A recording begins.

        Returns:
            to be called when it is over; that the recording is let go of will do too.
        """
        with self._lock:
            if self._recordings == 0:
                before = gc.get_threshold()
                # One that an exception out of a signal's handler has left raised is not raised again.
                if before != self._raised:
                    self._before = before
                young, *older = self._before
                self._raised = (max(young, min(young * FACTOR, _MOST)), older[0], older[1])
                gc.set_threshold(*self._raised)
            self._recordings += 1
        return weakref.finalize(recording, self._end)

    def _end(self) -> None:
        with self._lock:
            self._recordings -= 1
            # What the run has set meanwhile stands.
            if self._recordings == 0:
                if gc.get_threshold() == self._raised:
                    gc.set_threshold(*self._before)
                self._raised = self._before


PATIENCE: Final = Patience()
