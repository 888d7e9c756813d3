"""Patched trees under Ray: the dump of two tensor-parallel ranks, msProbe reading it, and where DUMP_ON can be set."""

import csv
import json
import re
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from probe_patch.dump_format import PHASE_FOLDERS, Phase
from probe_patch.patcher.request import Request
from tests.end_to_end.jobs import dump_into, dumps_in, parameter_norms, patched_tree, read_phase
from tests.end_to_end.ray_runs import env_vars, run_under_ray
from tests.fixtures.results import Result
from tests.needs import needs
from tests.runtime.dumps import DumpOnDisk

MSPROBE = Path(__file__).parents[2] / ".venv-msprobe" / "bin" / "msprobe"
PHASES: tuple[Phase, ...] = ("ref", "old", "actor")
RANKS = (0, 1)
ONE_RANK = ["--num-rollout", "1", "--tensor-model-parallel-size", "1"]


@pytest.fixture(scope="module")
def scratch() -> Iterator[Path]:
    """pytest's own folders have names too long for Ray's sockets."""
    with tempfile.TemporaryDirectory(prefix="pp") as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def two_ranks(scratch: Path) -> Result:
    """v0.3's shape, two tensor-parallel ranks, two rollouts, DUMP_ON in the job's runtime env only."""
    config = dump_into(scratch / "two_ranks" / "dump")
    job = env_vars(DUMP_ON="1", PROBE_PATCH_CONFIG=str(config))
    tree = patched_tree("E15", scratch / "two_ranks" / "tree")
    return run_under_ray(tree, scratch, ["--num-rollout", "2", "--runtime-env", job])


@pytest.fixture
def dump_path(two_ranks: Result, scratch: Path) -> Path:
    return scratch / "two_ranks" / "dump"


def test_every_rank_writes_every_phase_of_every_rollout(two_ranks: Result, dump_path: Path) -> None:
    assert {rank.phases for rollout in two_ranks.rollouts for rank in rollout.ranks} == {PHASES}
    assert dumps_in(dump_path) == sorted(
        f"{folder}/step{step}/rank{rank}" for folder in PHASE_FOLDERS.values() for step in (0, 1) for rank in RANKS
    )


def test_meta_says_who_wrote_a_dump(two_ranks: Result, dump_path: Path) -> None:
    assert {rank.dump_on for rollout in two_ranks.rollouts for rank in rollout.ranks} == {"1"}
    metas = {(phase, rank): read_phase(dump_path, phase, 1, rank).meta for phase in PHASES for rank in RANKS}
    for (phase, rank), meta in metas.items():
        assert (meta["rank"], meta["world_size"]) == (rank, 2)
        assert (meta["parallel"]["tp"], meta["parallel"]["dp"]) == ({"rank": rank, "size": 2}, {"rank": 0, "size": 1})
        assert (meta["phase"], meta["step"], meta["rollout_id"]) == (phase, 1, 1)
        assert (meta["ended_by_exception"], meta["problems"]) == (None, [])
    workers = {rank: {metas[phase, rank]["pid"] for phase in PHASES} for rank in RANKS}
    assert [len(pids) for pids in workers.values()] == [1, 1]
    assert workers[0] != workers[1]


def test_each_rank_dumps_its_own_shard(dump_path: Path) -> None:
    dumps = [read_phase(dump_path, "old", 0, rank) for rank in RANKS]
    assert set(dumps[0].data) == set(dumps[1].data)
    output = "Module.0.output_layer.ColumnParallelLinear.forward.0"
    left, right = (dump.data[output]["output"][0] for dump in dumps)
    assert left["shape"] == right["shape"] == [*left["shape"][:2], 64]
    assert left["Norm"] != right["Norm"]
    here, there = (parameter_norms(dump) for dump in dumps)
    assert {name for name in here if here[name] == there[name]} == {name for name in here if "RMSNorm" in name}


def msprobe(folder: Path, *arguments: object) -> str:
    """What msProbe says; it must end well, with no error but the one about the accelerator's toolkit."""
    needs(MSPROBE.exists(), "msProbe is not there: make venv-msprobe")
    command = [str(MSPROBE), *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    complaints = [line for line in said.splitlines() if re.search(r"\[ERROR\]|\[WARNING\]|Traceback", line)]
    assert [line for line in complaints if "CANN environment" not in line] == []
    return said


def rows_of(result: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(result.read_text(encoding="utf-8-sig").splitlines()))


def assert_ref_meets_old(rows: list[dict[str, str]], ref: DumpOnDisk, old: DumpOnDisk) -> None:
    """Every row pairs one name of both sides, each entry has rows, and the numbers are ours."""
    assert rows
    assert [row["Bench Name"] for row in rows] == [row["NPU Name"] for row in rows]
    # The weights differ, so outputs may be further apart than inputs; a wrong type, shape or dtype would be an error.
    assert {row["Result"] for row in rows} <= {"pass", "warning"}
    compared = {match[0] for row in rows if (match := re.match(r".*\.forward\.\d+", row["NPU Name"]))}
    assert compared == set(old.data)
    by_name = {row["NPU Name"]: row for row in rows}
    entry = "Module.0.decoder.layers.1.mlp.linear_fc1.ColumnParallelLinear.forward.3"
    for side, dump in (("NPU", ref), ("Bench", old)):
        weight, output = by_name[f"{entry}.parameters.weight"], by_name[f"{entry}.output.0"]
        assert float(weight[f"{side} l2norm"]) == dump.data[entry]["parameters"]["weight"]["Norm"]
        assert float(output[f"{side} max"]) == dump.data[entry]["output"][0]["Max"]


def test_msprobe_compares_ref_with_old_on_both_ranks(dump_path: Path, tmp_path: Path) -> None:
    ref, old = (dump_path / PHASE_FOLDERS[phase] / "step0" for phase in ("ref", "old"))
    msprobe(tmp_path, "compare", "-tp", ref, "-gp", old, "-o", tmp_path / "out")
    for rank in RANKS:
        (result,) = (tmp_path / "out").glob(f"compare_result_rank{rank}_*.csv")
        dumps = [read_phase(dump_path, phase, 0, rank) for phase in ("ref", "old")]
        assert_ref_meets_old(rows_of(result), *dumps)


def test_msprobe_compares_two_files(dump_path: Path, tmp_path: Path) -> None:
    ref, old = (dump_path / PHASE_FOLDERS[phase] / "step1" / "rank1" / "dump.json" for phase in ("ref", "old"))
    msprobe(tmp_path, "compare", "-tp", ref, "-gp", old, "-o", tmp_path / "out")
    (result,) = (tmp_path / "out").glob("compare_result_*.csv")
    assert_ref_meets_old(rows_of(result), *(read_phase(dump_path, phase, 1, 1) for phase in ("ref", "old")))


def test_msprobe_draws_the_two_phases_as_graphs(dump_path: Path, tmp_path: Path) -> None:
    ref, old = (dump_path / PHASE_FOLDERS[phase] / "step0" for phase in ("ref", "old"))
    said = msprobe(tmp_path, "graph_visualize", "-tp", ref, "-gp", old, "-o", tmp_path / "out")
    assert "Successfully exported compare graph results" in said
    (database,) = (tmp_path / "out").glob("compare_*.vis.db")
    with sqlite3.connect(database) as connection:
        names = {name for (name,) in connection.execute("select node_name from tb_nodes")}
    connection.close()
    assert set(read_phase(dump_path, "old", 0).data) <= names


def test_dump_on_in_the_actors_environment_is_enough(scratch: Path) -> None:
    """The driver imports the patched file without it."""
    config = dump_into(scratch / "actor_env" / "dump")
    actor = json.dumps({"DUMP_ON": "1", "PROBE_PATCH_TRAIN_CONFIG": str(config)})
    tree = patched_tree("E12", scratch / "actor_env" / "tree")
    result = run_under_ray(tree, scratch, [*ONE_RANK, "--actor-env", actor])
    assert result.rollouts[0].ranks[0].probe_patch_loaded
    assert dumps_in(scratch / "actor_env" / "dump") == sorted(
        f"{folder}/step0/rank0" for folder in PHASE_FOLDERS.values()
    )


def test_an_exported_dump_on_is_enough_with_the_config_named_by_apply(scratch: Path) -> None:
    config = dump_into(scratch / "export" / "dump")
    tree = patched_tree("miles", scratch / "export" / "tree", Request(("ref", "actor"), config=str(config)))
    result = run_under_ray(tree, scratch, ONE_RANK, {"DUMP_ON": " on "})
    assert result.phases() == PHASES
    assert dumps_in(scratch / "export" / "dump") == ["actor_train/step0/rank0", "ref_compute_log_prob/step0/rank0"]


def test_switched_off_the_worker_has_slimes_own_function_and_nothing_of_ours(scratch: Path) -> None:
    """The actor's environment wins over the job's, as everywhere in Ray."""
    config = dump_into(scratch / "off" / "dump")
    job = env_vars(DUMP_ON="1", PROBE_PATCH_CONFIG=str(config))
    tree = patched_tree("E12", scratch / "off" / "tree")
    result = run_under_ray(tree, scratch, [*ONE_RANK, "--runtime-env", job, "--actor-env", '{"DUMP_ON": "0"}'])
    (report,) = result.rollouts[0].ranks
    assert report.dump_on == "0"
    assert report.train_function_is_original
    assert not report.probe_patch_loaded
    assert not (scratch / "off" / "dump").exists()
