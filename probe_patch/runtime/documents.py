"""The texts of dump.json, stack.json and construct.json: one line per entry, in msProbe's form (26.2.0)."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path

from probe_patch.dump_format import LAST_MICRO_BATCH
from probe_patch.runtime.capture.forms import Record, SavedRecord, TensorRecord
from probe_patch.runtime.json_text import JsonText, bare_tokens
from probe_patch.runtime.stats.rows import Readings


def entry_line(entry: str, record: Record, readings: Readings | None, json_text: JsonText = bare_tokens) -> str:
    """One entry of dump.json's ``data``, on one line."""

    def expanded(value: object) -> Mapping[str, Record]:
        if isinstance(value, TensorRecord | SavedRecord):
            return value.as_json(readings)
        raise TypeError(f"{type(value).__name__} has no record")

    return f"{json.dumps(entry)}: {json_text(record, expanded)}"


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


def construct_document(
    parents: Mapping[str, str | None], micro_batches: int, micro_batch: Callable[[str], int]
) -> Iterator[str]:
    """construct.json: each entry's parent, or null.

    Of several micro-batches, the entry's own, counted from 0, stands beside the parent. msProbe's key is named as if it
    held their number; it holds the last one, and its reader adds 1.
    """
    if micro_batches <= 1 or not parents:
        yield from _object(f"{json.dumps(entry)}: {json.dumps(parent)}" for entry, parent in parents.items())
    else:
        pairs = (f"{json.dumps(entry)}: {json.dumps([up, micro_batch(entry)])}" for entry, up in parents.items())
        yield from _object(chain([f'"{LAST_MICRO_BATCH}": {micro_batches - 1}'], pairs))
    yield "\n"


def _object(members: Iterable[str]) -> Iterator[str]:
    separator = "{\n"
    for member in members:
        yield separator
        yield member
        separator = ",\n"
    yield "{}" if separator == "{\n" else "\n}"
