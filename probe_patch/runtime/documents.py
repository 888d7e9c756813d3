"""dump.json, stack.json and construct.json in msProbe's form (26.2.0), a line per entry.

They come in pieces, of which each is good until the next is asked for.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from probe_patch.dump_format import LAST_MICRO_BATCH
from probe_patch.runtime.ascii_text import AsciiText
from probe_patch.runtime.call_names import add_forward
from probe_patch.runtime.enclosures import ConstructText

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from probe_patch.runtime.capture.forwards import Call
    from probe_patch.runtime.enclosures import Enclosures

_AT_A_TIME: Final = 1000
"""Calls that become one piece."""


def dump_document(
    task: str, level: str, data_folder: Path | None, lines: Iterable[bytes | memoryview]
) -> Iterator[str | bytes | memoryview]:
    """dump.json.

    Args:
        data_folder: where tensors are saved, if they are.
        lines: see ``Lines``.
    """
    folder = None if data_folder is None else str(data_folder)
    yield f'{{"task": {json.dumps(task)}, "level": {json.dumps(level)}, "framework": "pytorch", '
    yield f'"dump_data_dir": {json.dumps(folder)}, "data": '
    yield from _object(lines)
    yield "}\n"


def stack_document(groups: Iterable[tuple[list[Call], tuple[str, ...]]]) -> Iterator[str | bytes | memoryview]:
    """stack.json: the calls that share a call stack, and its frames, under consecutive numbers."""
    yield from _object(_stacks(groups))
    yield "\n"


def construct_document(enclosures: Enclosures, calls: int, micro_batches: int) -> Iterator[str | bytes | memoryview]:
    """construct.json: each entry's parent, or null.

    Of several micro-batches, the entry's own, counted from 0, stands beside the parent. msProbe's key is named as if it
    held their number; it holds the last one, and its reader adds 1.

    Args:
        calls: how many have begun.
    """
    yield from _object(_parents(enclosures, calls, micro_batches))
    yield "\n"


def _stacks(groups: Iterable[tuple[list[Call], tuple[str, ...]]]) -> Iterator[memoryview]:
    text = AsciiText()
    # Most frames are in many stacks.
    known: dict[str, str] = {}
    for number, (calls, frames) in enumerate(groups):
        text.cut(0)
        _add_group(text, number, calls, frames, known)
        with text.view() as view:
            yield view


def _add_group(text: AsciiText, number: int, calls: list[Call], frames: tuple[str, ...], known: dict[str, str]) -> None:
    text.add(',\n"' if number else '\n"')
    text.add_integer(number)
    text.add('": [')
    before = "["
    for call in calls:
        text.add(before)
        add_forward(text, call)
        before = ", "
    text.add("], [" if frames else "], []")
    before = ""
    for frame in frames:
        text.add(before)
        written = known.get(frame)
        if written is None:
            written = known[frame] = json.dumps(frame)
        text.add(written)
        before = ", "
    text.add("]]" if frames else "]")


def _parents(enclosures: Enclosures, calls: int, micro_batches: int) -> Iterator[bytes | memoryview]:
    text = AsciiText()
    told = ConstructText(text, micro_batches > 1)
    is_first = True
    for first in range(0, calls, _AT_A_TIME):
        enclosures.tell(told, first, first + _AT_A_TIME)
        if is_first and text.size:
            is_first = False
            if micro_batches > 1:
                yield f'\n"{LAST_MICRO_BATCH}": {micro_batches - 1},'.encode()
        with text.view() as view:
            yield view
        text.cut(0)


def _object(members: Iterable[bytes | memoryview]) -> Iterator[str | bytes | memoryview]:
    """An object of these members, each of which is behind a line break, and between two a comma before that."""
    is_empty = True
    for some in members:
        if is_empty and len(some):
            is_empty = False
            yield "{"
        yield some
    yield "{}" if is_empty else "\n}"
