"""msProbe's own tools read what we write; run where ``make venv-msprobe`` has been."""

import csv
import subprocess
from pathlib import Path

import pytest
import torch

from probe_patch.runtime.debugger import PrecisionDebugger
from tests.needs import needs
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


def test_graph_visualize_builds_a_graph(two_dumps: tuple[Path, Path], tmp_path: Path) -> None:
    left, right = two_dumps
    said = msprobe("graph_visualize", "-tp", left, "-gp", right, "-o", tmp_path / "out", folder=tmp_path)
    assert "Successfully exported compare graph results" in said
    assert list((tmp_path / "out").glob("compare_*.vis.db"))
