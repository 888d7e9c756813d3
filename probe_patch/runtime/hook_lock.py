"""The lock of one dump: whoever records holds it, and takes and gives it back thousands of times in a step.

This is what stands in for ``hook_lock.pyx`` where nothing is compiled; both do the same.
"""

import threading


class HookLock:
    """A lock that its thread may take again, as ``threading.RLock``. ``with`` waits for as long as it takes.

    The methods that take it say whether it was taken.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def take(self) -> bool:
        """Take it if that can be done at once."""
        return self._lock.acquire(blocking=False)

    def wait(self, seconds: float) -> bool:
        """Take it, and wait for no longer than this for another thread to give it back."""
        return self._lock.acquire(timeout=seconds)

    def give_back(self) -> None:
        """The thread that has taken it is done."""
        self._lock.release()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *raised: object) -> None:
        self._lock.release()
