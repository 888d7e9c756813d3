"""Whole lines added to a file, each group between markers; no line of the file changes.

The text added is ASCII, so its bytes are the same in every encoding that Python accepts for this file; its newlines
and its indentation are those of the line it stands by.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from probe_patch.patcher.markers import begin_marker, end_marker, split_lines


@dataclass(frozen=True, order=True)
class Insertion:
    """A marked block to put before line ``line`` (from 0; the number of lines puts it last).

    Attributes:
        line: where.
        rank: order among blocks for the same line: a phase is stopped before the next one is started.
        name: the block's name in its markers.
        code: the lines between the markers, unindented, ``\\n`` between them, ASCII.
        indent: the white space of the statement it belongs to, as it stands in the file.
        detail: what the opening marker carries besides the name.
    """

    line: int
    rank: int
    name: str
    code: str
    indent: bytes
    detail: tuple[tuple[str, object], ...] | None = None

    def text(self) -> list[str]:
        detail = None if self.detail is None else dict(self.detail)
        return [begin_marker(self.name, detail), *self.code.splitlines(), end_marker(self.name)]


def insert(source: bytes, insertions: Iterable[Insertion]) -> bytes:
    """``source`` with every insertion in its place."""
    lines = split_lines(source)
    default_newline = next((newline for line in lines if (newline := _newline(line))), b"\n")
    needs_newline = bool(lines) and not _newline(lines[-1])
    if needs_newline:
        # The block takes over the missing newline: the last line gets one, and the block itself ends without.
        lines[-1] += default_newline
    for insertion in sorted(insertions, reverse=True):
        newline = _newline_near(lines, insertion.line) or default_newline
        added = [insertion.indent + text.encode("ascii") if text else b"" for text in insertion.text()]
        lines.insert(insertion.line, newline.join(added) + newline)
    if needs_newline:
        lines[-1] = lines[-1].removesuffix(b"\n").removesuffix(b"\r")
    return b"".join(lines)


def indent_of(line: bytes) -> bytes:
    return line[: len(line) - len(line.lstrip(b" \t\f"))]


def _newline(line: bytes) -> bytes:
    return line[len(line.rstrip(b"\r\n")) :]


def _newline_near(lines: list[bytes], number: int) -> bytes:
    """Mixed files keep their mix: the newline of the line before, else of the line after."""
    before = _newline(lines[number - 1]) if number > 0 else b""
    after = _newline(lines[number]) if number < len(lines) else b""
    return before or after
