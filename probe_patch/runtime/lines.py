"""The lines of one dump.json until it is written: the latest in memory, those before them in a file without a name."""

from __future__ import annotations

import os
import tempfile
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from probe_patch.runtime.problems import Problems

MOST_IN_MEMORY: Final = 4 << 20
"""Characters."""

_READ_AT_ONCE: Final = 1 << 20


class Lines:
    """Text without line breaks, in the order in which it is added; it can be gone through again and again.

    A forked child has what its parent had in memory, and neither reads nor writes the parent's file.

    Args:
        folder: where the file is, as long as the process lives. Its name goes as soon as it is made.
        problems: told where there can be none; then all lines stay in memory.
    """

    def __init__(self, folder: Path | None, problems: Problems) -> None:
        self._folder = folder
        self._problems = problems
        self._kept: list[str] = []
        self._characters = 0
        self._may_move = folder is not None
        self._file: IO[bytes] | None = None
        self._bytes = 0
        self._pid = os.getpid()

    def __del__(self) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, lines: Iterable[str]) -> None:
        """Take these lines. If that is cut short, those that were given so far are taken."""
        for line in lines:
            self._kept.append(line)
            self._characters += len(line)
            if self._characters > MOST_IN_MEMORY and self._may_move and self._pid == os.getpid():
                self._move()

    def __iter__(self) -> Iterator[str]:
        """All lines.

        Raises:
            OSError: the file cannot be read.
        """
        if self._file is not None and self._pid == os.getpid():
            yield from _lines_of(self._file.fileno(), self._bytes)
        yield from self._kept

    def _move(self) -> None:
        """Move what is in memory to the file."""
        text = "".join(f"{line}\n" for line in self._kept).encode()
        try:
            if self._file is None:
                # Unbuffered: a forked child that lets go of it must have nothing to write.
                self._file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115
            _write(self._file.fileno(), text, self._bytes)
        except OSError as error:
            self._may_move = False
            reason = f"{type(error).__name__}: {error}, in {self._folder}"
            self._problems.note("moving entries out of memory", f"{reason}; they stay in memory until the step ends")
        else:
            self._bytes += len(text)
            self._kept = []
            self._characters = 0


def _write(file: int, text: bytes, at: int) -> None:
    left = memoryview(text)
    while left:
        written = os.pwrite(file, left, at)
        left, at = left[written:], at + written


def _lines_of(file: int, size: int) -> Iterator[str]:
    """The lines in the first bytes of a file, each of which ends in a line break."""
    at, begun = 0, b""
    while at < size:
        piece = os.pread(file, min(_READ_AT_ONCE, size - at), at)
        if not piece:
            raise OSError(f"entries are missing from {at} on: what was moved out of memory has been cut off")
        at += len(piece)
        *whole, begun = (begun + piece).split(b"\n")
        for line in whole:
            yield line.decode()
