"""The texts of dump.json, stack.json and construct.json: one line per entry, in msProbe's form (26.2.0).

NaN and infinities are written as the bare tokens ``NaN``, ``Infinity`` and ``-Infinity``, which the readers expect.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain

from probe_patch.dump_format import LAST_MICRO_BATCH
from probe_patch.runtime.capture.forms import Record, TensorRecord
from probe_patch.runtime.stats.table import Readings


def entry_line(entry: str, record: Mapping[str, Record], readings: Readings | None) -> str:
    """One entry of dump.json's ``data``, on one line."""

    def tensor(value: object) -> Mapping[str, Record]:
        if isinstance(value, TensorRecord):
            return value.as_json(readings)
        raise TypeError(f"{type(value).__name__} has no record")

    return f"{json.dumps(entry)}: {json.dumps(record, default=tensor)}"


def dump_document(task: str, level: str, lines: Iterable[str]) -> Iterator[str]:
    """dump.json of a dump without tensor files, in pieces."""
    yield f'{{"task": {json.dumps(task)}, "level": {json.dumps(level)}, "framework": "pytorch", '
    yield '"dump_data_dir": null, "data": '
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
