"""What lies in a dump folder: a row per dump, and one module's numbers in each phase."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from probe_patch.dump_format import DUMP_FILE, META_FILE, PHASE_FOLDERS, Phase


@dataclass(frozen=True)
class DumpRow:
    """One directory with a dump. ``size`` is in bytes, over all its files."""

    phase: Phase
    step: int
    rank: int
    modules: int
    tensors: int
    size: int
    folder: Path


@dataclass(frozen=True)
class Numbers:
    """The statistics of one tensor."""

    phase: Phase
    max: float
    min: float
    mean: float
    norm: float


def dump_rows(dump_path: Path) -> list[DumpRow]:
    """All dumps below ``dump_path``, by phase, step and rank."""
    return list(_rows(dump_path))


def _rows(dump_path: Path) -> Iterator[DumpRow]:
    for phase, name in PHASE_FOLDERS.items():
        for meta_file in sorted((dump_path / name).glob(f"step*/rank*/{META_FILE}")):
            meta = json.loads(meta_file.read_bytes())
            folder = meta_file.parent
            modules = {".".join(entry.split(".")[:-2]) for entry in _data(folder)}
            size = sum(path.stat().st_size for path in folder.iterdir())
            yield DumpRow(phase, meta["step"], meta["rank"], len(modules), meta["tensors"], size, folder)


def module_numbers(rows: list[DumpRow], module_suffix: str) -> tuple[str, list[Numbers]]:
    """The first output, in the first forward of step 0 on rank 0, of the first module whose name ends so."""
    found: list[Numbers] = []
    entry_name = ""
    for row in rows:
        if (row.step, row.rank) != (0, 0):
            continue
        for entry, record in _data(row.folder).items():
            if entry.endswith(".forward.0") and entry.split(".")[:-3][-1] == module_suffix:
                entry_name, tensor = entry, record["output"][0]
                found.append(Numbers(row.phase, tensor["Max"], tensor["Min"], tensor["Mean"], tensor["Norm"]))
                break
    return entry_name, found


def _data(folder: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((folder / DUMP_FILE).read_bytes())["data"]
    return data
