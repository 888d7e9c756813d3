"""The texts of dump.json, stack.json and construct.json: one line per entry, in msProbe's form (26.2.0)."""

import json
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from probe_patch.dump_format import LAST_MICRO_BATCH
from probe_patch.runtime.capture.forms import Record, SavedRecord, TensorRecord, TensorTexts, WrittenRecord
from probe_patch.runtime.json_text import BARE, JsonStyle, string_text


def entry_line(entry: str, record: Record, tensors: TensorTexts, style: JsonStyle = BARE) -> str:
    """One entry of dump.json's ``data``, on one line."""
    return f"{string_text(entry)}: {record_text(record, tensors, style)}"


# One frame per level of nesting, so that nested.DEEPEST levels fit under Python's recursion limit: hence loops. In them
# tensors, of which nearly all records are made, take no call more than they must.
def record_text(record: Record, tensors: TensorTexts, style: JsonStyle) -> str:
    """A record, or a part of one, as JSON.

    Raises:
        TypeError: JSON has no form for something in it.
    """
    text_of = tensors.text
    if type(record) is TensorRecord:
        return text_of(record)
    if type(record) is WrittenRecord:
        return record
    parts: list[str] = []
    if type(record) is SavedRecord:
        record = record.members()
    if isinstance(record, dict):
        for name, part in record.items():
            text = text_of(part) if type(part) is TensorRecord else record_text(part, tensors, style)
            parts.append(f"{string_text(name)}: {text}")
        return f"{{{', '.join(parts)}}}"
    if isinstance(record, list | tuple):
        for part in record:
            parts.append(text_of(part) if type(part) is TensorRecord else record_text(part, tensors, style))  # noqa: PERF401
        return f"[{', '.join(parts)}]"
    return style.leaf(record)


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
    members = (f"{string_text(entry)}: {_enclosed_by(up, number, micro_batches)}" for entry, up, number in enclosures)
    first = next(members, None)
    if first is None:
        yield from _object(())
    elif micro_batches <= 1:
        yield from _object(chain((first,), members))
    else:
        yield from _object(chain((f'"{LAST_MICRO_BATCH}": {micro_batches - 1}', first), members))
    yield "\n"


def _enclosed_by(parent: str | None, micro_batch: int, micro_batches: int) -> str:
    text = "null" if parent is None else string_text(parent)
    return text if micro_batches <= 1 else f"[{text}, {micro_batch}]"


def _object(members: Iterable[str]) -> Iterator[str]:
    before = "{\n"
    for member in members:
        yield before + member
        before = ",\n"
    yield "{}" if before == "{\n" else "\n}"
