"""One tree with slime and SGLang in it: patched, checked and reverted by one command each, dumped into one path."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from probe_patch.demo.fixture import actor_file, lay_out
from tests.cli.running import run
from tests.cli.trees import contents
from tests.end_to_end.jobs import dumps_in
from tests.end_to_end.sglang.run_jobs import OURS
from tests.fixtures.results import Result
from tests.fixtures.sglang.runs import Plan, Served
from tests.fixtures.sglang.trees import lay_out_sglang, runner_file

PAIRS = [("E12", "A"), ("E15", "D"), ("miles", "F")]
PLAN = Plan([{"do": "generate", "prompts": [[1, 2, 3]], "new_tokens": 2}])

each_pair = pytest.mark.parametrize(("slime", "sglang"), PAIRS)


@pytest.fixture
def image(slime: str, sglang: str, tmp_path: Path) -> Path:
    """What a slime image holds."""
    return lay_out_sglang(sglang, lay_out(slime, tmp_path / "image"))


def files_of(slime: str, sglang: str) -> tuple[Path, Path]:
    return actor_file(slime), runner_file(sglang)


def edit(file: Path, change: Callable[[str], str]) -> None:
    before = file.read_text()
    file.write_text(change(before))
    assert file.read_text() != before


def python(tree: Path, env: Mapping[str, str], *arguments: str) -> str:
    """Run a script of the tree; returns what it said on stderr."""
    clean = {name: value for name, value in os.environ.items() if name not in {*OURS, "PROBE_PATCH_TRAIN_CONFIG"}}
    command = [sys.executable, *arguments]
    # No compiled files, so that the tree can be compared to the byte.
    whole = {**clean, "PYTHONDONTWRITEBYTECODE": "1", **env}
    done = subprocess.run(command, cwd=tree, env=whole, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def train(tree: Path, scratch: Path, env: Mapping[str, str]) -> Result:
    python(tree, env, "train.py", "--local", "--num-rollout", "1", "--result", str(scratch / "trained.json"))
    return Result.model_validate_json((scratch / "trained.json").read_bytes())


def serve(tree: Path, scratch: Path, env: Mapping[str, str]) -> Served:
    (scratch / "plan.json").write_text(json.dumps(PLAN.document()))
    python(tree, env, "serve.py", str(scratch / "plan.json"), str(scratch / "served.json"))
    return Served.model_validate_json((scratch / "served.json").read_bytes())


@each_pair
def test_both_sides_dump_into_one_path_from_one_config_and_are_undone_to_the_byte(
    image: Path, tmp_path: Path, slime: str, sglang: str
) -> None:
    before = contents(image)
    trained, served = (side(image, tmp_path, {}) for side in (train, serve))
    assert contents(image) == before

    assert run("apply", image).code == 0
    changed = {name for name, content in contents(image).items() if before.get(name) != content}
    assert changed == {str(file) for file in files_of(slime, sglang)}
    assert run("check", image).code == 0
    assert run("check", image, "--clean").code == 1

    dump_path = tmp_path / "dump"
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"level": "L0", "dump_path": str(dump_path), "rollout": {"modes": ["all"]}}))
    env = {"DUMP_ON": "1", "PROBE_PATCH_CONFIG": str(config)}
    assert train(image, tmp_path, env).numbers() == trained.numbers()
    assert serve(image, tmp_path, env).numbers() == served.numbers()
    assert dumps_in(dump_path) == [
        "actor_train/step0/rank0",
        "old_log_prob/step0/rank0",
        "ref_compute_log_prob/step0/rank0",
        "rollout/step0/rank0",
        "rollout/step1/rank0",
    ]
    tools = {path.parts[-4]: json.loads(path.read_bytes())["phase"] for path in dump_path.rglob("meta.json")}
    assert tools == {"actor_train": "actor", "old_log_prob": "old", "ref_compute_log_prob": "ref", "rollout": "rollout"}

    assert run("revert", image).code == 0
    assert contents(image) == before
    assert run("check", image, "--clean").code == 0


@each_pair
@pytest.mark.parametrize("damaged", ["slime", "SGLang"])
def test_where_one_side_is_refused_neither_is_written(image: Path, slime: str, sglang: str, damaged: str) -> None:
    actor, runner = (image / file for file in files_of(slime, sglang))
    if damaged == "slime":
        edit(actor, lambda source: source.replace("class MegatronTrainRayActor", "class SomeOtherActor"))
    else:
        edit(runner, lambda source: source.replace("    def forward(", "    def forward_somehow("))
    before = contents(image)
    refused = run("apply", image)
    assert refused.code == 3
    assert str(actor if damaged == "slime" else runner) in refused.err
    assert contents(image) == before


@each_pair
@pytest.mark.parametrize("touched", ["slime", "SGLang"])
def test_check_looks_at_both_sides(image: Path, slime: str, sglang: str, touched: str) -> None:
    assert run("apply", image).code == 0
    file = image / files_of(slime, sglang)[("slime", "SGLang").index(touched)]
    edit(file, lambda source: source.replace("_probe_patch_", "_patch_probe_", 1))
    found = run("check", image)
    assert found.code != 0
    assert str(file) in found.out + found.err


@pytest.mark.parametrize(("slime", "sglang"), [("E15", "native")])
def test_beside_an_sglang_with_its_own_hook_slime_is_patched_alone(image: Path, slime: str, sglang: str) -> None:
    before = contents(image)
    applied = run("apply", image)
    assert applied.code == 0
    changed = {name for name, content in contents(image).items() if before.get(name) != content}
    assert changed == {str(actor_file(slime))}
    assert "--sglang-" in applied.out + applied.err
    assert run("revert", image).code == 0
    assert contents(image) == before


def test_an_sglang_with_its_own_hook_alone_is_refused_with_its_flags(tmp_path: Path) -> None:
    tree = lay_out_sglang("native", tmp_path / "tree")
    before = contents(tree)
    refused = run("apply", tree)
    assert refused.code == 3
    for words in (
        "0.5.11",
        " --disable-cuda-graph",
        "--sglang-disable-cuda-graph",
        "DUMP_ON=1",
        "--msprobe-dump-config",
    ):
        assert words in refused.err
    assert contents(tree) == before


@pytest.mark.parametrize("sglang", ["A", "F"])
def test_a_process_that_recorded_nothing_says_why_when_it_ends(tmp_path: Path, sglang: str) -> None:
    tree = lay_out_sglang(sglang, tmp_path / "tree")
    assert run("apply", tree).code == 0
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"level": "L0", "dump_path": str(tmp_path / "dump"), "rollout": {"min_tokens": 100}}))
    (tmp_path / "plan.json").write_text(json.dumps(PLAN.document()))
    env = {"DUMP_ON": "1", "PROBE_PATCH_ROLLOUT_CONFIG": str(config)}
    said = python(tree, env, "serve.py", str(tmp_path / "plan.json"), str(tmp_path / "served.json"))
    assert dumps_in(tmp_path / "dump") == []
    (sentence,) = [line for line in said.splitlines() if "nothing is recorded" in line]
    for words in ("min_tokens", "100", "radix cache", "health"):
        assert words in sentence
