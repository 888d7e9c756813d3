"""Reads what the runtime wrote."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from probe_patch.dump_format import LAST_MICRO_BATCH
from probe_patch.runtime.lines import Lines


@dataclass(frozen=True)
class DumpOnDisk:
    """The parsed files of one rank of one step.

    Attributes:
        construct: the parents, whether or not the file holds micro-batches beside them.
        micro_batches: the micro-batch of each entry of construct.json.
    """

    dump: dict[str, Any]
    stack: dict[str, Any]
    construct: dict[str, Any]
    meta: dict[str, Any]
    micro_batches: dict[str, int]

    @property
    def data(self) -> dict[str, Any]:
        entries: dict[str, Any] = self.dump["data"]
        return entries


def read_dump(folder: Path) -> DumpOnDisk:
    names = ("dump.json", "stack.json", "construct.json", "meta.json")
    dump, stack, construct, meta = (json.loads((folder / name).read_text(encoding="utf-8")) for name in names)
    if construct.pop(LAST_MICRO_BATCH, None) is None:
        return DumpOnDisk(dump, stack, construct, meta, dict.fromkeys(construct, 0))
    parents, micro_batches = ({entry: pair[part] for entry, pair in construct.items()} for part in (0, 1))
    return DumpOnDisk(dump, stack, parents, meta, micro_batches)


def texts_of(lines: Lines) -> list[str]:
    """The lines one by one."""
    first, *texts = ("," + b"".join(map(bytes, lines)).decode()).split(",\n")
    assert first in ("", ",")
    return texts


def entries_of(lines: Lines) -> dict[str, Any]:
    """What the lines say."""
    entries: dict[str, Any] = json.loads(b"{" + b"".join(map(bytes, lines)) + b"}")
    return entries


def only_rank(step_folder: Path) -> Path:
    (folder,) = step_folder.iterdir()
    return folder
