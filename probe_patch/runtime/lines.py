"""The lines of one dump.json until it is written: the latest in memory, those before them in a file without a name."""

from __future__ import annotations

import os
import tempfile
from typing import IO, TYPE_CHECKING, Final

from probe_patch.runtime.ascii_text import AsciiText

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from probe_patch.runtime.problems import Problems

MOST_IN_MEMORY: Final = 4 << 20
"""Characters."""

_spare: Final[list[AsciiText]] = []
"""Of the last dump: its memory is there already, and one page after the other need not be asked for. At most one."""

_READ_AT_ONCE: Final = 1 << 20


class Lines:
    """Text that grows line by line; it can be gone through again and again.

    A forked child has what its parent had in memory, and neither reads nor writes the parent's file.

    Args:
        folder: where the file is, as long as the process lives. Its name goes as soon as it is made.
        problems: told where there can be none; then all lines stay in memory.
    """

    def __init__(self, folder: Path | None, problems: Problems) -> None:
        self._folder = folder
        self._problems = problems
        self._text = _room()
        self._whole = 0
        self._may_move = folder is not None
        self._file: IO[bytes] | None = None
        self._bytes = 0
        self._pid = os.getpid()

    def __del__(self) -> None:
        if self._file is not None:
            self._file.close()
        # Of what had to stay in memory there may be any amount.
        if self._may_move and not _spare:
            self._text.cut(0)
            _spare.append(self._text)

    def begin(self) -> AsciiText:
        """What the next line is to be added to, without a line break; what was begun before and not ended goes."""
        text = self._text
        text.cut(self._whole)
        text.add(",\n")
        return text

    def end(self) -> None:
        """The line is complete."""
        self._whole = self._text.size
        if self._whole > MOST_IN_MEMORY and self._may_move and self._pid == os.getpid():
            self._move()

    def __iter__(self) -> Iterator[bytes | memoryview]:
        """All lines, in pieces, each line behind a line break, and between two a comma before that.

        A piece is good until the next is asked for.

        Raises:
            OSError: the file cannot be read.
        """
        # The first line too has a comma before it.
        at = 1
        if self._file is not None and self._pid == os.getpid():
            yield from _pieces_of(self._file.fileno(), at, self._bytes)
            at = 0
        with self._text.view() as view, view[at : self._whole] as rest:
            yield rest

    def _move(self) -> None:
        """Move what is in memory to the file."""
        size = self._whole
        try:
            if self._file is None:
                # Unbuffered: a forked child that lets go of it must have nothing to write.
                self._file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115
            with self._text.view() as view:
                _write(self._file.fileno(), view, self._bytes)
        except OSError as error:
            self._may_move = False
            reason = f"{type(error).__name__}: {error}, in {self._folder}"
            self._problems.note("moving entries out of memory", f"{reason}; they stay in memory until the step ends")
        else:
            self._bytes += size
            self._whole = 0
            self._text.cut(0)


def _room() -> AsciiText:
    # Another thread may be as quick.
    try:
        return _spare.pop()
    except IndexError:
        return AsciiText()


def _write(file: int, text: memoryview, at: int) -> None:
    begin = 0
    while begin < len(text):
        with text[begin:] as left:
            begin += os.pwrite(file, left, at + begin)


def _pieces_of(file: int, at: int, size: int) -> Iterator[bytes]:
    """The first bytes of a file, from ``at`` on."""
    while at < size:
        piece = os.pread(file, min(_READ_AT_ONCE, size - at), at)
        if not piece:
            raise OSError(f"entries are missing from {at} on: what was moved out of memory has been cut off")
        at += len(piece)
        yield piece
