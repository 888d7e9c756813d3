"""Our dumps against msProbe's of the same program: the same names, parents and numbers, or a reason why not.

Run where ``make venv-msprobe`` has been.
"""

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from probe_patch.runtime.debugger import PrecisionDebugger
from tests.needs import needs
from tests.runtime import toy_program
from tests.runtime.dumps import DumpOnDisk, only_rank, read_dump

REPOSITORY = Path(__file__).parents[2]
MSPROBE_PYTHON = REPOSITORY / ".venv-msprobe" / "bin" / "python"
LEVELS = [(level, risk) for level in ("L0", "L1", "mix") for risk in ("CORE", "FOCUS", "ALL")]


def both(*entries: str) -> frozenset[str]:
    return frozenset(f"{entry}.{direction}" for entry in entries for direction in ("forward", "backward"))


IN_PLACE = frozenset(
    f"Module.blocks.{block}.mlp.{module}.backward.0" for block in (0, 1) for module in ("0.Linear", "1.ReLU")
)
"""msProbe loses the backward of an in-place module and of the one before it."""

EARLY = both("Torch.relu.0")
"""msProbe does not see a function that was imported before it started."""

CORE_LINEAR = both(*(f"Functional.linear.{number}" for number in range(9)))
"""In msProbe's CORE list a comma is missing between "chain_matmul" and "linear"."""

INDEXES = both("Tensor.__getitem__.0", "Tensor.__getitem__.1")
FACTORIES = frozenset({"Torch.zeros.0.forward", "Torch.zeros.1.forward"})
"""They are not in msProbe's list of what it wraps."""

IDLE_DROPOUT = frozenset({"Functional.dropout.0.backward", "Functional.dropout.1.backward"})
"""A dropout that drops nothing hands its input on; msProbe then loses its backward."""

ONE_WAY_ROUND, OTHER_WAY_ROUND = both("Tensor.__mul__.2"), both("Tensor.__rmul__.0")
"""Of ``2 * x`` torch tells us only that it multiplies: we say ``__mul__``, msProbe ``__rmul__``."""

ROOT = frozenset(f"Module.Toy.{direction}.0" for direction in ("forward", "backward"))
"""msProbe leaves the model itself out, so what is outermost there has the model for a parent here."""

PEER_GIVES_WRONG_PARENTS = "backward"
"""After an in-place module msProbe's stack of open backwards is one off: of backwards, no parent can be compared."""


def ours_only(level: str, risk: str) -> frozenset[str]:
    modules = IN_PLACE | ROOT if level in ("L0", "mix") else frozenset[str]()
    if level == "L0":
        return modules
    if risk == "CORE":
        return modules | CORE_LINEAR
    always = modules | EARLY | INDEXES | IDLE_DROPOUT | ONE_WAY_ROUND
    return always | FACTORIES if risk == "ALL" else always


def theirs_only(level: str, risk: str) -> frozenset[str]:
    return OTHER_WAY_ROUND if level != "L0" and risk != "CORE" else frozenset()


def write_config(folder: Path, name: str, level: str, risk: str) -> Path:
    config = {"task": "statistics", "dump_path": str(folder / name), "rank": [], "step": [], "level": level}
    path = folder / f"{name}.json"
    modes = {"scope": [], "list": [], "data_mode": ["all"]}
    path.write_text(json.dumps(config | {"risk_level": risk, "statistics": modes}))
    return path


def run(python: Path | str, debugger_module: str, config: Path) -> None:
    # In a process of its own, as msProbe replaces torch's functions for good.
    command = [str(python), str(Path(toy_program.__file__)), debugger_module, str(config)]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, env=environment)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module", params=LEVELS, ids="-".join)
def dumps(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, str, DumpOnDisk, dict[str, Any], dict[str, Any]]:
    """Level, risk level, our dump, msProbe's data and construct."""
    needs(MSPROBE_PYTHON.exists(), "make venv-msprobe installs msProbe")
    level, risk = request.param
    folder = tmp_path_factory.mktemp("interop")
    run(sys.executable, PrecisionDebugger.__module__, write_config(folder, "ours", level, risk))
    run(MSPROBE_PYTHON, "msprobe.pytorch", write_config(folder, "theirs", level, risk))
    their_folder = only_rank(folder / "theirs" / "step0")
    data = json.loads((their_folder / "dump.json").read_text())["data"]
    construct = json.loads((their_folder / "construct.json").read_text())
    return level, risk, read_dump(only_rank(folder / "ours" / "step0")), data, construct


def test_the_names_are_msprobes_but_for_the_differences_listed_here(dumps: Any) -> None:
    level, risk, ours, theirs, _ = dumps
    assert ours.meta["problems"] == []
    assert ours.data.keys() - theirs.keys() == ours_only(level, risk)
    assert theirs.keys() - ours.data.keys() == theirs_only(level, risk)


def test_the_parents_of_forwards_are_msprobes(dumps: Any) -> None:
    level, _, ours, _, construct = dumps
    if level == "L1":
        assert ours.construct == construct == {}
        return
    common = [entry for entry in ours.construct if entry in construct and PEER_GIVES_WRONG_PARENTS not in entry]
    assert common
    outermost = {
        entry: "Module.Toy.forward.0" for entry in common if construct[entry] is None and "cross_entropy" not in entry
    }
    assert {entry: ours.construct[entry] for entry in common} == {
        entry: construct[entry] for entry in common
    } | outermost


def tensors(record: Any) -> Iterator[dict[str, Any]]:
    """The tensors of a record in order. By place in the list or by keyword makes no difference: functions of
    nn.functional that are written in Python hand everything but their tensors on by keyword, which is what we see."""
    if isinstance(record, dict) and record.get("type") == "torch.Tensor":
        yield record
    elif isinstance(record, dict | list):
        for part in record.values() if isinstance(record, dict) else record:
            yield from tensors(part)


def same(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Max and Min to the bit; Mean and Norm to what adding up in another order makes of them."""
    if any(ours[key] != theirs[key] for key in ("dtype", "shape", "Max", "Min", "requires_grad")):
        return False
    # msProbe has neither for integers.
    return all(
        theirs[key] is None
        if ours["dtype"] in ("torch.int64", "torch.bool") and ours["shape"]
        else math.isclose(ours[key], theirs[key], rel_tol=1e-5, abs_tol=1e-7)
        for key in ("Mean", "Norm")
        if ours[key] is not None
    )


def test_the_numbers_of_forwards_and_parameters_are_msprobes(dumps: Any) -> None:
    _, _, ours, theirs, _ = dumps
    common = [entry for entry in ours.data if entry in theirs and "backward" not in entry]
    assert common
    for entry in common:
        mine, other = list(tensors(ours.data[entry])), list(tensors(theirs[entry]))
        assert len(mine) == len(other), entry
        assert all(same(one, two) for one, two in zip(mine, other, strict=True)), entry


def test_the_gradients_of_outputs_are_msprobes(dumps: Any) -> None:
    """Of inputs, msProbe has those of the last autograd node of a function in that node's order, bias first in a
    linear, so that only a module's can be compared."""
    _, _, ours, theirs, _ = dumps
    compared = 0
    for entry in (entry for entry in ours.data if entry in theirs and "backward" in entry):
        keys = ("input", "output") if entry.startswith("Module") else ("input",)
        for key in keys:
            mine, other = ours.data[entry][key], theirs[entry][key]
            for one, two in zip(mine, other, strict=key == "input"):
                # Of an output that the module itself goes on to use, msProbe has no gradient.
                if two is not None:
                    compared += 1
                    assert one is not None and same(one, two), (entry, key)
    assert compared
