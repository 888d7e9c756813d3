"""Processes that a test interrupts."""

import signal


def heed_interrupts() -> None:
    """For ``preexec_fn``: shells start background jobs deaf to Ctrl-C, and their children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
