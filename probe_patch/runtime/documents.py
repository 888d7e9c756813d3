"""The texts of dump.json, stack.json and construct.json: one line per entry, in msProbe's form (26.2.0)."""

import json
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Final

from probe_patch.dump_format import LAST_MICRO_BATCH
from probe_patch.runtime.capture.forms import Record, SavedRecord, TensorRecord, TensorTexts, WrittenRecord
from probe_patch.runtime.json_text import BARE, JsonStyle, string_text

_AT_A_TIME: Final = 1000
"""Members of an object that become one piece."""

# Of the keys that nearly all records have.
_KEY_TEXTS: Final = {
    key: f'"{key}": ' for key in ("input_args", "input_kwargs", "output", "parameters", "input", "type", "value")
}


def entry_line(entry: str, record: Record, tensors: TensorTexts, style: JsonStyle = BARE) -> str:
    """One entry of dump.json's ``data``, on one line."""
    pieces = [string_text(entry), ": "]
    _add(pieces, record, tensors, style)
    return "".join(pieces)


def record_text(record: Record, tensors: TensorTexts, style: JsonStyle) -> str:
    """A record, or a part of one, as JSON.

    Raises:
        TypeError: JSON has no form for something in it.
    """
    pieces: list[str] = []
    _add(pieces, record, tensors, style)
    return "".join(pieces)


# One frame per level of nesting, so that nested.DEEPEST levels fit under Python's recursion limit: hence loops. In them
# tensors, of which nearly all records are made, take no call more than they must.
def _add(pieces: list[str], record: Record, tensors: TensorTexts, style: JsonStyle) -> None:
    if type(record) is TensorRecord:
        pieces.append(tensors.text(record))
        return
    if type(record) is WrittenRecord:
        pieces.append(record)
        return
    if type(record) is SavedRecord:
        record = record.members()
    if isinstance(record, dict):
        pieces.append("{")
        for name, part in record.items():
            pieces.append(_KEY_TEXTS.get(name) or f"{string_text(name)}: ")
            if type(part) is TensorRecord:
                pieces.append(tensors.text(part))
            else:
                _add(pieces, part, tensors, style)
            pieces.append(", ")
        if record:
            pieces[-1] = "}"
        else:
            pieces.append("}")
    elif isinstance(record, list | tuple):
        pieces.append("[")
        for part in record:
            if type(part) is TensorRecord:
                pieces.append(tensors.text(part))
            else:
                _add(pieces, part, tensors, style)
            pieces.append(", ")
        if record:
            pieces[-1] = "]"
        else:
            pieces.append("]")
    else:
        pieces.append(style.leaf(record))


def dump_document(task: str, level: str, data_folder: Path | None, lines: Iterable[str]) -> Iterator[str]:
    """dump.json in pieces; ``data_folder`` is where tensors are saved, if they are."""
    folder = None if data_folder is None else str(data_folder)
    yield f'{{"task": {json.dumps(task)}, "level": {json.dumps(level)}, "framework": "pytorch", '
    yield f'"dump_data_dir": {json.dumps(folder)}, "data": '
    yield from _object(lines)
    yield "}\n"


def stack_document(groups: Iterable[tuple[list[str], tuple[str, ...]]]) -> Iterator[str]:
    """stack.json: the entries that share a call stack, and its frames, under consecutive numbers."""
    yield from _object(f'"{number}": {json.dumps(group)}' for number, group in enumerate(groups))
    yield "\n"


def construct_document(enclosures: Iterable[tuple[str, str | None, int]], micro_batches: int) -> Iterator[str]:
    """construct.json: each entry's parent, or null.

    Of several micro-batches, the entry's own, counted from 0, stands beside the parent. msProbe's key is named as if it
    held their number; it holds the last one, and its reader adds 1.

    Args:
        enclosures: entries, their parents and their micro-batches.
    """
    members = _parents(enclosures, micro_batches)
    first = next(members, None)
    if first is None:
        yield from _object(())
    elif micro_batches <= 1:
        yield from _object(chain((first,), members))
    else:
        yield from _object(chain((f'"{LAST_MICRO_BATCH}": {micro_batches - 1}', first), members))
    yield "\n"


def _parents(enclosures: Iterable[tuple[str, str | None, int]], micro_batches: int) -> Iterator[str]:
    # One after the other have the same parent, in one string.
    latest: str | None = None
    text = "null"
    for entry, parent, micro_batch in enclosures:
        if parent is not latest:
            latest, text = parent, "null" if parent is None else string_text(parent)
        if micro_batches <= 1:
            yield f"{string_text(entry)}: {text}"
        else:
            yield f"{string_text(entry)}: [{text}, {micro_batch}]"


def _object(members: Iterable[str]) -> Iterator[str]:
    before, left = "{\n", iter(members)
    while some := list(islice(left, _AT_A_TIME)):
        some[0] = before + some[0]
        yield ",\n".join(some)
        before = ",\n"
    yield "{}" if before == "{\n" else "\n}"
