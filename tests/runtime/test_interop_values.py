"""What our dumps say of values against msProbe's of the same program: keys and their order, checksums, files.

Run where ``make venv-msprobe`` has been.
"""

import json
import math
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from probe_patch.runtime.debugger import PrecisionDebugger
from tests.needs import needs
from tests.runtime import values_program
from tests.runtime.dumps import only_rank

REPOSITORY = Path(__file__).parents[2]
MSPROBE_PYTHON = REPOSITORY / ".venv-msprobe" / "bin" / "python"
ROOT = "Module.Values."

SLICES = [{"dim": 0, "size": 3, "begin": 1, "end": 3}, {"dim": 1, "begin": -2}]

MODES: dict[str, dict[str, Any]] = {
    "md5": {"task": "statistics", "statistics": {"summary_mode": "md5"}},
    "xor": {"task": "statistics", "statistics": {"summary_mode": "xor"}},
    "tensor": {"task": "tensor", "tensor": {}},
    "tensor-held": {"task": "tensor", "tensor": {"list": ["Module"]}, "async_dump": True},
    "tensor-md5": {"task": "tensor", "tensor": {"summary_mode": "md5"}},
    "structure": {"task": "structure", "structure": {}},
    "slices": {"task": "statistics", "statistics": {"tensor_list": ["first", "exchange"], "slice": SLICES}},
}

ONLY_OURS = {"Mean", "Norm"}
"""msProbe has none of either for integers and float64, and no norm for complex values."""


@dataclass(frozen=True)
class Pair:
    mode: str
    ours: Path
    theirs: Path

    def files(self, name: str) -> tuple[Any, Any]:
        """Without the model itself, which msProbe leaves out."""
        ours, theirs = (json.loads((folder / name).read_text()) for folder in (self.ours, self.theirs))
        entries = ours["data"] if name == "dump.json" else ours
        for entry in [entry for entry in entries if entry.startswith(ROOT)]:
            del entries[entry]
        return ours, theirs

    def records(self) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
        """Everything with a type, by its place, in both dumps."""
        ours, theirs = self.files("dump.json")
        yield from pairs("", ours["data"], theirs["data"])


def pairs(place: str, ours: Any, theirs: Any) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    assert type(ours) is type(theirs), place
    if isinstance(ours, dict):
        if "type" in ours:
            yield place, ours, theirs
            return
        assert ours.keys() == theirs.keys(), place
        for key, part in ours.items():
            yield from pairs(f"{place}.{key}", part, theirs[key])
    elif isinstance(ours, list):
        for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from pairs(f"{place}.{index}", one, other)


def write_config(folder: Path, mode: str) -> Path:
    task = MODES[mode]["task"]
    section = {"scope": [], "list": [], "data_mode": ["all"]} | MODES[mode][task]
    config = {"dump_path": str(folder), "rank": [], "step": [], "level": "L0"} | MODES[mode] | {task: section}
    folder.mkdir(parents=True)
    path = folder / "config.json"
    path.write_text(json.dumps(config))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Holds a dump of each mode by both: ``{mode}/ours`` and ``{mode}/theirs``."""
    needs(MSPROBE_PYTHON.exists(), "make venv-msprobe installs msProbe")
    folder = tmp_path_factory.mktemp("values")
    for mode in MODES:
        values_program.record(PrecisionDebugger, str(write_config(folder / mode / "ours", mode)))
    configs = [str(write_config(folder / mode / "theirs", mode)) for mode in MODES]
    command = [str(MSPROBE_PYTHON), str(Path(values_program.__file__)), "msprobe.pytorch", *configs]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(params=list(MODES))
def dumps(request: pytest.FixtureRequest, folder: Path) -> Pair:
    mode = request.param
    return Pair(mode, *(only_rank(folder / mode / name / "step0") for name in ("ours", "theirs")))


def test_entries_and_heads_are_the_same(dumps: Pair) -> None:
    ours, theirs = dumps.files("dump.json")
    assert ours.pop("data").keys() == theirs.pop("data").keys()
    folders = [dump.pop("dump_data_dir") for dump in (ours, theirs)]
    assert list(ours.items()) == list(theirs.items())
    has_files = dumps.mode.startswith(("tensor", "slices"))
    assert folders == [str(folder / "dump_tensor_data") if has_files else None for folder in (dumps.ours, dumps.theirs)]


def test_parents_are_the_same(dumps: Pair) -> None:
    ours, theirs = dumps.files("construct.json")
    below_root = {entry: None if (parent or "").startswith(ROOT) else parent for entry, parent in ours.items()}
    assert below_root == theirs


def same_number(ours: Any, theirs: Any, dtype: str) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float):
        # msProbe adds up in the tensor's own dtype.
        tolerance = 1e-2 if dtype in ("torch.float16", "torch.bfloat16") else 1e-5
        return math.isclose(ours, theirs, rel_tol=tolerance, abs_tol=1e-7)
    return bool(ours == theirs)


def is_rounded(key: str, dtype: str) -> bool:
    return key in ONLY_OURS or (key in ("Max", "Min") and "complex" in dtype)


def is_not_held(mode: str, dtype: str) -> bool:
    """With async_dump msProbe has no numbers of complex values."""
    return mode == "tensor-held" and "complex" in dtype


def test_records_have_the_same_keys_in_the_same_order_and_the_same_values(dumps: Pair) -> None:
    compared = 0
    for place, ours, theirs in dumps.records():
        assert list(ours) == list(theirs), place
        compared += 1
        for key, value in ours.items():
            dtype = ours.get("dtype", "")
            if theirs[key] is None and (key in ONLY_OURS or is_not_held(dumps.mode, dtype)):
                continue
            if dumps.mode == "xor" and key == "md5" and ours["shape"] == []:
                continue  # msProbe gives the number itself as the checksum of a scalar
            is_same = same_number(value, theirs[key], dtype) if is_rounded(key, dtype) else value == theirs[key]
            assert is_same, (place, key)
    assert (compared > 30) == (dumps.mode != "structure")


def test_tensor_files_have_the_same_names_and_contents(dumps: Pair) -> None:
    ours, theirs = (
        {path.name: path for path in (folder / "dump_tensor_data").glob("*") if not path.name.startswith(ROOT)}
        for folder in (dumps.ours, dumps.theirs)
    )
    assert ours.keys() == theirs.keys()
    assert bool(ours) == dumps.mode.startswith(("tensor", "slices"))
    for name, path in ours.items():
        one, other = torch.load(path, weights_only=True), torch.load(theirs[name], weights_only=True)
        assert (type(one), one.dtype, one.shape, one.is_contiguous(), one.requires_grad) == (
            torch.Tensor,
            other.dtype,
            other.shape,
            True,
            False,
        ), name
        assert torch.equal(one, other), name
