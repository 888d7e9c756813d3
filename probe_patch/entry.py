"""Where the ``probe-patch`` command begins: light enough that Ctrl-C is heard from its first moment to its last."""

import signal
import sys
from types import FrameType
from typing import Final

HEEDED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals that end a command as Ctrl-C does: what it has begun is rolled back."""


class Ended(KeyboardInterrupt):
    """A signal other than that of Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = signal.Signals(number)


def main() -> None:
    """Run the command line; importing it takes a while, and the end of the process must not be interrupted."""
    try:
        _listen()
        from probe_patch.cli import main as command_line

        command_line()
    except KeyboardInterrupt as interruption:
        sys.stderr.write(f"{sentence_of(interruption)}\n")
        sys.exit(exit_code_of(interruption))
    finally:
        for number in HEEDED:
            signal.signal(number, signal.SIG_IGN)


def sentence_of(interruption: KeyboardInterrupt) -> str:
    what = f"ended by {interruption.signal.name}" if isinstance(interruption, Ended) else "interrupted"
    return f"probe-patch: {what}; no file is half done"


def exit_code_of(interruption: KeyboardInterrupt) -> int:
    """128 and the number of the signal, as shells have it."""
    return 128 + (interruption.signal if isinstance(interruption, Ended) else signal.SIGINT)


def _listen() -> None:
    for number in HEEDED:
        if signal.getsignal(number) is signal.SIG_DFL:  # nohup's deafness stays
            signal.signal(number, _end)


def _end(number: int, _frame: FrameType | None) -> None:
    raise Ended(number)
