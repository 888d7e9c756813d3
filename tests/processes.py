"""Processes that a test starts: interrupted, and gone in the end."""

import signal
import time
from collections.abc import Callable, Collection
from typing import TypeVar

Left = TypeVar("Left", bound=Collection[object])

PATIENCE = 20.0
"""Seconds in which Ray ends its workers, which it does behind the driver's back, on a busy machine."""


def heed_interrupts() -> None:
    """For ``preexec_fn``: shells start background jobs deaf to Ctrl-C, and nohup to hang-ups; children inherit that."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def left_in_the_end(look: Callable[[], Left]) -> Left:
    """What ``look`` still finds when nothing more is left, or patience has run out."""
    deadline = time.monotonic() + PATIENCE
    while (left := look()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left
