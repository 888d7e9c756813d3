"""The marked blocks that probe-patch adds to a file, and their removal.

    # >>> probe-patch <name> [<json>]
    …
    # <<< probe-patch <name>

Everything here works on bytes and on lines as Python counts them (``\\n``, ``\\r\\n`` and ``\\r``), so a file in any
encoding that keeps ASCII as it is comes back byte for byte. Nothing here parses Python: a file that somebody is
halfway through editing can still be stripped.
"""

import json
import re
from dataclasses import dataclass
from typing import Final

from probe_patch.errors import Refused

PRELUDE: Final = "prelude"

_BEGIN = re.compile(rb"[ \t\f]*# >>> probe-patch (?P<name>[a-z]+(?:-[a-z]+)*)(?: (?P<detail>\{.*\}))?[ \t]*")
_END = re.compile(rb"[ \t\f]*# <<< probe-patch (?P<name>[a-z]+(?:-[a-z]+)*)[ \t]*")
_LOOKS_LIKE_MARKER = re.compile(rb"#[ \t]*(?:>>>|<<<)[ \t]*probe-patch\b")


@dataclass(frozen=True)
class Block:
    """One marked block: lines ``first`` to ``last``, both markers included, counted from 0."""

    name: str
    detail: str | None
    first: int
    last: int


class DamagedMarkers(Refused):
    """Markers that do not pair up, so that nobody can say what is ours and what is the user's."""


def split_lines(source: bytes) -> list[bytes]:
    """Lines with their terminators, as Python's own tokenizer counts them."""
    return source.splitlines(keepends=True)


def begin_marker(name: str, detail: dict[str, object] | None = None) -> str:
    return f"# >>> probe-patch {name}" + (f" {json.dumps(detail)}" if detail is not None else "")


def end_marker(name: str) -> str:
    return f"# <<< probe-patch {name}"


def find_blocks(source: bytes, where: str) -> tuple[Block, ...]:
    """The marked blocks of ``source`` in their order.

    Raises:
        DamagedMarkers: a marker without its partner, one inside another, or a line that only resembles a marker.
    """
    blocks: list[Block] = []
    opened: tuple[str, str | None, int] | None = None
    for number, line in enumerate(split_lines(source)):
        if not _LOOKS_LIKE_MARKER.search(line):
            continue
        text = line.rstrip(b"\r\n")
        if begin := _BEGIN.fullmatch(text):
            if opened is not None:
                raise _damaged(where, number, f"the block opened on line {opened[2] + 1} is not closed before it")
            detail = begin["detail"]
            opened = (begin["name"].decode(), None if detail is None else detail.decode("ascii", "replace"), number)
        elif end := _END.fullmatch(text):
            if opened is None or opened[0] != end["name"].decode():
                raise _damaged(where, number, "it closes a block that was not opened")
            blocks.append(Block(opened[0], opened[1], opened[2], number))
            opened = None
        else:
            raise _damaged(where, number, "it resembles a probe-patch marker but is none")
    if opened is not None:
        raise _damaged(where, opened[2], f"the block {opened[0]!r} is not closed")
    return tuple(blocks)


def strip_blocks(source: bytes, blocks: tuple[Block, ...]) -> bytes:
    """``source`` without ``blocks``.

    A block that ends the file without a newline was put behind a last line that had none either (see
    ``insertion.insert``), so that line loses its newline again.
    """
    if not blocks:
        return source
    lines = split_lines(source)
    marked = {number for block in blocks for number in range(block.first, block.last + 1)}
    kept = [line for number, line in enumerate(lines) if number not in marked]
    ends_the_file = blocks[-1].last == len(lines) - 1
    if kept and ends_the_file and lines[-1] == lines[-1].rstrip(b"\r\n"):
        kept[-1] = kept[-1].rstrip(b"\r\n")
    return b"".join(kept)


def _damaged(where: str, number: int, reason: str) -> DamagedMarkers:
    return DamagedMarkers(
        f"{where}, line {number + 1}: {reason}; restore the line, or delete the block by hand, and run again"
    )
