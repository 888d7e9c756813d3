"""Reads what the runtime wrote."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class DumpOnDisk:
    """The parsed files of one rank of one step."""

    dump: dict[str, Any]
    stack: dict[str, Any]
    construct: dict[str, Any]
    meta: dict[str, Any]

    @property
    def data(self) -> dict[str, Any]:
        entries: dict[str, Any] = self.dump["data"]
        return entries


def read_dump(folder: Path) -> DumpOnDisk:
    names = ("dump.json", "stack.json", "construct.json", "meta.json")
    return DumpOnDisk(*(json.loads((folder / name).read_text(encoding="utf-8")) for name in names))


def only_rank(step_folder: Path) -> Path:
    (folder,) = step_folder.iterdir()
    return folder
