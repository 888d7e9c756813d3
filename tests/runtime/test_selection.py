"""What scope, list and data_mode take, next to what msProbe takes of the same program.

The comparison runs where ``make venv-msprobe`` has been.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
import torch

from probe_patch.runtime.debugger import PrecisionDebugger
from tests.needs import needs
from tests.runtime.dumps import only_rank, read_dump
from tests.runtime.test_interop import MSPROBE_PYTHON, NOT_WRAPPED, ROOTS, both, idle_dropouts, in_place, run
from tests.runtime.toys import Mlp, ones

if TYPE_CHECKING:
    from pathlib import Path

UP, DOWN, BODY, NORM = (
    f"Module.{name}" for name in ("body.up.Linear", "body.down.Linear", "body.Sequential", "norm.LayerNorm")
)

LINEAR = "Functional.linear.{}.forward"


def config_file(folder: Path, name: str, level: str, section: dict[str, Any]) -> Path:
    document = {"task": "statistics", "dump_path": str(folder / name), "rank": [], "step": [], "level": level}
    path = folder / f"{name}.json"
    path.write_text(json.dumps(document | {"statistics": {"scope": [], "list": [], "data_mode": ["all"]} | section}))
    return path


def taken(folder: Path, level: str, section: dict[str, Any], passes: int = 1) -> set[str]:
    """The entries of ``passes`` passes through a small model."""
    debugger, model = PrecisionDebugger(config_file(folder, "ours", level, section)), Mlp()
    debugger.start(model)
    for _ in range(passes):
        model(ones(2, 4)).sum().backward()
    debugger.stop()
    return set(read_dump(only_rank(folder / "ours" / "step0")).data)


TAKEN = {
    "a module": ("L0", {"list": ["norm"]}, {f"{NORM}.forward.0", f"{NORM}.backward.0", f"{NORM}.parameters_grad.0"}),
    "a direction is part of a name": ("L0", {"list": [f"{NORM}.forward"]}, {f"{NORM}.forward.0"}),
    "nothing matches": ("L0", {"list": ["no such module"]}, set()),
    "functions": ("L1", {"list": ["layer_norm"], "data_mode": ["forward"]}, {"Functional.layer_norm.0.forward"}),
    "in mix a module opens what runs inside it": (
        "mix",
        {"list": ["body.Sequential"], "data_mode": ["forward"]},
        {f"{BODY}.forward.0", f"{UP}.forward.0", f"{DOWN}.forward.0", LINEAR.format(0), LINEAR.format(1)},
    ),
    "in L0 not": ("L0", {"list": ["body.Sequential"], "data_mode": ["forward"]}, {f"{BODY}.forward.0"}),
    "scope over forwards": (
        "L0",
        {"scope": [f"{DOWN}.forward.0", f"{NORM}.forward.0"]},
        {f"{DOWN}.forward.0", f"{NORM}.forward.0"},
    ),
    "scope of one module": (
        "L0",
        {"scope": [f"{BODY}.forward.0", f"{BODY}.forward.0"]},
        {f"{BODY}.forward.0", f"{UP}.forward.0", f"{DOWN}.forward.0"},
    ),
    "scope over backwards": (
        "L0",
        {"scope": [f"{DOWN}.backward.0", f"{DOWN}.backward.0"]},
        {f"{DOWN}.backward.0", f"{DOWN}.parameters_grad.0"},
    ),
    "both": ("L0", {"scope": [f"{UP}.forward.0", f"{NORM}.forward.0"], "list": ["down"]}, {f"{DOWN}.forward.0"}),
}


@pytest.mark.parametrize(("level", "section", "entries"), TAKEN.values(), ids=TAKEN)
def test_what_is_taken(tmp_path: Path, level: str, section: dict[str, Any], entries: set[str]) -> None:
    assert taken(tmp_path, level, section) == entries


def test_numbers_are_those_of_a_dump_of_everything_and_a_scope_takes_the_call_it_names(tmp_path: Path) -> None:
    scope = {"scope": [f"{UP}.forward.1", f"{DOWN}.forward.1"]}
    assert taken(tmp_path, "L0", scope, passes=3) == {f"{UP}.forward.1", f"{DOWN}.forward.1"}


def test_a_scope_that_is_never_closed_goes_on(tmp_path: Path) -> None:
    scope = {"scope": [f"{DOWN}.forward.1", f"{DOWN}.forward.9"], "data_mode": ["forward"]}
    assert f"{UP}.forward.2" in taken(tmp_path, "L0", scope, passes=3)


def test_what_is_around_the_taken_entries_is_their_parent_still(tmp_path: Path) -> None:
    taken(tmp_path, "L0", {"list": ["down"], "data_mode": ["forward"]})
    dump = read_dump(only_rank(tmp_path / "ours" / "step0"))
    assert dump.construct[f"{DOWN}.forward.0"] == f"{BODY}.forward.0"
    assert f"{BODY}.forward.0" in dump.construct
    assert f"{NORM}.forward.0" not in dump.construct


@pytest.mark.parametrize(
    ("modes", "forward_keys", "backward_keys"),
    [
        (["all"], ["input_args", "input_kwargs", "output", "parameters"], ["input", "output"]),
        ([], ["input_args", "input_kwargs", "output", "parameters"], ["input", "output"]),
        (["forward"], ["input_args", "input_kwargs", "output", "parameters"], None),
        (["backward"], None, ["input", "output"]),
        (["input"], ["input_args", "input_kwargs"], ["input"]),
        (["output"], ["output", "parameters"], ["output"]),
        (["forward", "input"], ["input_args", "input_kwargs"], None),
        (["backward", "output"], None, ["output"]),
    ],
    ids=str,
)
def test_data_mode_chooses_directions_and_sides(
    tmp_path: Path, modes: list[str], forward_keys: list[str] | None, backward_keys: list[str] | None
) -> None:
    taken(tmp_path, "L0", {"data_mode": modes})
    data = read_dump(only_rank(tmp_path / "ours" / "step0")).data
    keys = {entry: list(record) for entry, record in data.items()}
    assert keys.get(f"{UP}.forward.0") == forward_keys
    assert keys.get(f"{UP}.backward.0") == backward_keys
    assert (f"{UP}.parameters_grad.0" in keys) == (backward_keys is not None)


def test_what_is_not_taken_is_not_measured(tmp_path: Path) -> None:
    torch.manual_seed(0)
    taken(tmp_path, "L0", {"list": ["norm"], "data_mode": ["forward", "input"]})
    assert read_dump(only_rank(tmp_path / "ours" / "step0")).meta["tensors"] == 1


BLOCK = "Module.blocks.{}.Block.{}.0"
OURS_ONLY = both("Torch.relu.0") | in_place("blocks.0.mlp", "blocks.1.mlp") | idle_dropouts(2)
"""See test_interop, whose first program this is."""


@pytest.mark.parametrize(
    ("level", "section"),
    [
        ("mix", {"data_mode": ["input"]}),
        ("mix", {"data_mode": ["backward", "output"]}),
        ("L1", {"list": ["layer_norm", "softmax"]}),
        ("mix", {"list": ["blocks.1.attention"]}),
        ("L0", {"scope": [BLOCK.format(0, "forward"), BLOCK.format(1, "forward")]}),
        ("mix", {"scope": ["Module.blocks.1.norm.LayerNorm.forward.0", "Functional.softmax.1.forward"]}),
        ("L0", {"scope": [BLOCK.format(1, "backward"), BLOCK.format(1, "backward")]}),
    ],
    ids=str,
)
def test_msprobe_takes_the_same(tmp_path: Path, level: str, section: dict[str, Any]) -> None:
    needs(MSPROBE_PYTHON.exists(), "make venv-msprobe installs msProbe")
    for name, python, module in (
        ("ours", sys.executable, PrecisionDebugger.__module__),
        ("theirs", MSPROBE_PYTHON, "msprobe.pytorch"),
    ):
        run(python, module, tmp_path / f"{name}-rendezvous", 1, [config_file(tmp_path, name, level, section)])
    ours = read_dump(only_rank(tmp_path / "ours" / "step0")).data
    theirs = json.loads((only_rank(tmp_path / "theirs" / "step0") / "dump.json").read_text())["data"]
    differ = ours.keys() ^ theirs.keys()
    assert theirs.keys() <= ours.keys()
    unknown_to_it = {entry for entry in differ if NOT_WRAPPED.match(entry) or ROOTS.fullmatch(entry)}
    assert differ - OURS_ONLY - unknown_to_it == set()
    # Where a scope ends at a function, msProbe has closed it before the function's output and its module's.
    outputs = {"output", "parameters"} if "scope" in section and level == "mix" else set()
    for entry in ours.keys() & theirs.keys():
        assert set(ours[entry]) - outputs == set(theirs[entry]) - outputs, entry
