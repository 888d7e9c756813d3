"""msProbe's own tools read what we write; run where ``make venv-msprobe`` has been."""

import contextlib
import csv
import json
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from probe_patch.runtime.debugger import PrecisionDebugger
from tests.needs import needs
from tests.runtime.configs import debugger_with
from tests.runtime.toys import Mlp, Recovers, ones

MSPROBE = Path(__file__).parents[2] / ".venv-msprobe" / "bin" / "msprobe"


@pytest.fixture
def two_dumps(tmp_path: Path) -> tuple[Path, Path]:
    """One model in two steps on two ranks, on two inputs; one of its modules raised."""
    needs(MSPROBE.exists(), "make venv-msprobe installs msProbe")
    torch.manual_seed(0)
    model = torch.nn.Sequential(Mlp(), Recovers())
    model[1].risky.error = ValueError("planned")  # type: ignore[union-attr]
    for name, scale in (("left", 1.0), ("right", 2.0)):
        for rank in (0, 1):
            debugger = PrecisionDebugger(dump_path=str(tmp_path / name), step=[])
            for _ in range(2):
                debugger.start(model, rank_id=rank)
                model(scale * ones(2, 4))
                debugger.step()
    return tmp_path / "left", tmp_path / "right"


def msprobe(*arguments: object, folder: Path) -> str:
    command = [str(MSPROBE), *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200, check=True)
    return done.stdout + done.stderr


def test_compare_pairs_every_record_of_every_rank(two_dumps: tuple[Path, Path], tmp_path: Path) -> None:
    left, right = two_dumps
    msprobe("compare", "-tp", left / "step0", "-gp", right / "step0", "-o", tmp_path / "out", folder=tmp_path)
    results = sorted((tmp_path / "out").glob("compare_result_rank*.csv"))
    assert [path.name.split("_")[2] for path in results] == ["rank0", "rank1"]
    lines = results[0].read_text(encoding="utf-8-sig").splitlines()
    rows = {row["NPU Name"]: row for row in csv.DictReader(lines)}
    first = rows["Module.0.body.up.Linear.forward.0.input.0"]
    assert (float(first["NPU max"]), float(first["Bench max"])) == (1.0, 2.0)
    assert "Module.1.risky.Fails.forward.0.input.0" in rows
    assert all(row["Bench Name"] == name for name, row in rows.items())


@pytest.fixture(params=["L1", "mix"])
def two_dumps_with_functions(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path, Path]:
    """The level, and the dumps of a model on two inputs, each with two micro-batches forward and backward."""
    needs(MSPROBE.exists(), "make venv-msprobe installs msProbe")
    torch.manual_seed(0)
    model, batches = Mlp(), (ones(2, 4), 3 * ones(2, 4))
    for name, scale in (("left", 1.0), ("right", 2.0)):
        config = tmp_path / f"{name}.json"
        config.write_text(json.dumps({"dump_path": str(tmp_path / name), "level": request.param, "risk_level": "ALL"}))
        debugger = PrecisionDebugger(str(config))
        debugger.start(model, rank_id=0)
        for batch in batches:
            torch.exp(model(scale * batch)).sum().backward()  # type: ignore[no-untyped-call]
        debugger.stop()
    return request.param, tmp_path / "left", tmp_path / "right"


def test_compare_pairs_functions_and_gradients(
    two_dumps_with_functions: tuple[str, Path, Path], tmp_path: Path
) -> None:
    level, left, right = two_dumps_with_functions
    msprobe("compare", "-tp", left / "step0", "-gp", right / "step0", "-o", tmp_path / "out", folder=tmp_path)
    (result,) = (tmp_path / "out").glob("compare_result_rank0_*.csv")
    rows = {row["NPU Name"]: row for row in csv.DictReader(result.read_text(encoding="utf-8-sig").splitlines())}
    multiplied = rows["Tensor.__mul__.0.forward.output.0"]
    assert (float(multiplied["NPU max"]), float(multiplied["Bench max"])) == (1.0, 2.0)
    assert "Functional.linear.0.backward.input.0" in rows
    for module in ("Module.norm.LayerNorm", "Module.Mlp"):
        assert (f"{module}.backward.1.input.0" in rows) == (level == "mix")
    assert all(row["Bench Name"] == name for name, row in rows.items())


def test_graph_visualize_draws_functions_inside_modules(
    two_dumps_with_functions: tuple[str, Path, Path], tmp_path: Path
) -> None:
    level, left, right = two_dumps_with_functions
    arguments = ("graph_visualize", "-tp", left, "-gp", right, "-o", tmp_path / "out")
    if level == "L1":  # Functions alone have no graph, msProbe's own neither.
        with pytest.raises(subprocess.CalledProcessError) as refused:
            msprobe(*arguments, folder=tmp_path)
        assert "construct.json" in refused.value.stdout + refused.value.stderr
        return
    assert "Successfully exported compare graph results" in msprobe(*arguments, folder=tmp_path)
    (drawn,) = (tmp_path / "out").glob("compare_*.vis.db")
    with contextlib.closing(sqlite3.connect(drawn)) as tables:
        assert tables.execute("select distinct micro_steps from tb_config").fetchall() == [(2,)]
        pages = dict(tables.execute("select node_name, micro_step_id from tb_nodes").fetchall())
        parents = dict(tables.execute("select node_name, up_node from tb_nodes").fetchall())
    numbered = {name: page for name, page in pages.items() if "parameters_grad" not in name}
    assert {name: numbered[name] for name in numbered if ".Mlp." in name or "exp" in name or "up.Linear" in name} == {
        f"{name}{suffix}": number
        for number in (0, 1)
        for direction in ("forward", "backward")
        for name, suffix in (
            ("Module.Mlp", f".{direction}.{number}"),
            ("Module.body.up.Linear", f".{direction}.{number}"),
            ("Torch.exp", f".{number}.{direction}"),
        )
    }
    assert parents["Module.norm.LayerNorm.backward.1"] == "Module.Mlp.backward.1"


def test_graph_visualize_builds_a_graph(two_dumps: tuple[Path, Path], tmp_path: Path) -> None:
    left, right = two_dumps
    said = msprobe("graph_visualize", "-tp", left, "-gp", right, "-o", tmp_path / "out", folder=tmp_path)
    assert "Successfully exported compare graph results" in said
    assert list((tmp_path / "out").glob("compare_*.vis.db"))


SUMMED: dict[str, tuple[dict[str, Any], str, str]] = {
    "md5": ({"statistics": {"summary_mode": "md5"}}, "NPU MD5", "BENCH MD5"),
    "xor": ({"statistics": {"summary_mode": "xor"}}, "NPU MD5", "BENCH MD5"),
    "tensor": ({"task": "tensor"}, "NPU max", "Bench max"),
    "tensor-md5": ({"task": "tensor", "tensor": {"summary_mode": "md5"}}, "NPU max", "Bench max"),
}


@pytest.fixture(params=list(SUMMED))
def compared(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, dict[str, dict[str, str]]]:
    """The mode, and what msProbe says of two dumps whose inputs differ, by name."""
    needs(MSPROBE.exists(), "make venv-msprobe installs msProbe")
    torch.manual_seed(0)
    model = torch.nn.Sequential(Mlp())
    for name, scale in (("left", 1.0), ("right", 2.0)):
        debugger = debugger_with(tmp_path / name, **SUMMED[request.param][0])
        debugger.start(model, rank_id=0)
        model(scale * torch.arange(8.0).reshape(2, 4)).sum().backward()
        debugger.stop()
    left, right = (tmp_path / name / "dump" / "step0" for name in ("left", "right"))
    msprobe("compare", "-tp", left, "-gp", right, "-o", tmp_path / "out", folder=tmp_path)
    (result,) = (tmp_path / "out").glob("compare_result_rank0_*.csv")
    lines = result.read_text(encoding="utf-8-sig").splitlines()
    return request.param, {row["NPU Name"]: row for row in csv.DictReader(lines)}


def test_compare_reads_checksums_and_tensors(compared: tuple[str, dict[str, dict[str, str]]]) -> None:
    mode, rows = compared
    _, left, right = SUMMED[mode]
    changed = rows["Module.0.body.up.Linear.forward.0.input.0"]
    same = rows["Module.0.body.up.Linear.forward.0.parameters.weight"]
    assert changed[left] != changed[right]
    assert same[left] == same[right]
    assert "Module.0.norm.LayerNorm.parameters_grad.0.bias" in rows
    assert all(row["Bench Name"] == name for name, row in rows.items())
    if mode.startswith("tensor"):
        # The files were found and read.
        assert float(changed["Cosine"]) == pytest.approx(1.0)
        assert float(changed["MaxAbsErr"]) == 7.0
        assert {row["Data_name"] for row in rows.values()} == {str([f"{name}.pt"] * 2) for name in rows}
