"""Trees patched with ``--debugger msprobe``, run with the real msProbe: its dumps are where ours would be, and whole.

Run where ``make venv-msprobe`` has been; its packages come before those of this environment, which has megatron-core.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from probe_patch.dump_format import PHASE_FOLDERS
from probe_patch.patcher.request import Request
from tests.end_to_end import jobs
from tests.end_to_end.sglang import jobs as serving
from tests.fixtures.sglang.runs import Plan
from tests.needs import needs

ROOT = Path(__file__).parents[2]
MSPROBE = Request(debugger="msprobe")
REF, OLD, ACTOR = PHASE_FOLDERS.values()
# Eight samples, two at a time.
MICRO_BATCHES = 4

SERVING = Plan(
    [
        {"do": "health"},
        {"do": "generate", "prompts": [[1, 2, 3, 4], [5, 6]], "new_tokens": 3},
        {"do": "health"},
        {"do": "generate", "prompts": [[7, 8, 9]], "new_tokens": 2},
    ]
)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    installed = sorted((ROOT / ".venv-msprobe").glob("lib/python3*/site-packages"))
    needs(bool(installed), "make venv-msprobe installs msProbe")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{ROOT}:{installed[0]}")
        yield tmp_path_factory.mktemp("msprobe")


def write_config(dump_path: Path, level: str) -> Path:
    dump_path.parent.mkdir(parents=True, exist_ok=True)
    path = dump_path.with_suffix(".json")
    keys = {"task": "statistics", "level": level, "dump_path": str(dump_path), "rollout": {"modes": ["extend"]}}
    path.write_text(json.dumps(keys))
    return path


@pytest.fixture(scope="module", params=["E7-L0", "E15-mix"])
def trained(request: pytest.FixtureRequest, scratch: Path) -> tuple[Path, jobs.Outcome, jobs.Outcome]:
    """The dump of two rollouts, what they computed, and what the same tree did with the dump off."""
    era, level = request.param.split("-")
    tree = jobs.patched_tree(era, scratch / request.param / "tree", MSPROBE)
    dump_path = scratch / request.param / "dump"
    config = write_config(dump_path, level)
    on = {"DUMP_ON": "1", "PROBE_PATCH_TRAIN_CONFIG": str(config)}
    flags = ["--num-rollout", "2"]
    outcomes = jobs.run_jobs(
        {"off": jobs.Job(tree, flags, jobs.OFF), "on": jobs.Job(tree, flags, on)}, scratch / request.param
    )
    return dump_path, outcomes["on"], outcomes["off"]


def entries(dump_path: Path, phase: str, step: int) -> dict[str, Any]:
    folder = dump_path / phase / f"step{step}" / "rank0"
    data: dict[str, Any] = json.loads((folder / "dump.json").read_text())["data"]
    return data


def modules(data: dict[str, Any]) -> set[str]:
    return {entry for entry in data if entry.startswith("Module.")}


def test_every_phase_of_every_rollout_has_its_dump(trained: tuple[Path, jobs.Outcome, jobs.Outcome]) -> None:
    dump_path, outcome, _ = trained
    expected = {f"{phase}/step{step}/rank0" for phase in (REF, OLD, ACTOR) for step in (0, 1)}
    assert set(jobs.dumps_in(dump_path)) == expected
    (said,) = outcome.said
    assert said.startswith("probe-patch: msProbe records: the gradients may change in their last bits")


def test_no_phase_holds_what_another_one_ran(trained: tuple[Path, jobs.Outcome, jobs.Outcome]) -> None:
    dump_path, _, _ = trained
    for step in (0, 1):
        ref, old, actor = (entries(dump_path, phase, step) for phase in (REF, OLD, ACTOR))
        assert modules(ref) == modules(old)
        forwards = {entry for entry in modules(actor) if ".forward." in entry}
        assert forwards == modules(ref)
        assert {entry.rsplit(".", 1)[1] for entry in modules(ref)} == {str(n) for n in range(MICRO_BATCHES)}
        assert any(".backward." in entry for entry in actor)
        assert not any("backward" in entry or "grad" in entry for data in (ref, old) for entry in data)
        for phase in (REF, OLD, ACTOR):
            folder = dump_path / phase / f"step{step}" / "rank0"
            construct = json.loads((folder / "construct.json").read_text())
            assert construct.pop("megatron_micro_step_number") == MICRO_BATCHES - 1
            # The start of an in-place backward may be there under its parent alone; no forward is.
            assert {entry for entry in construct if entry.startswith("Module.") and ".forward." in entry} == modules(
                ref
            )


def test_off_nothing_of_ours_is_loaded_and_on_the_same_forwards_are_computed(
    trained: tuple[Path, jobs.Outcome, jobs.Outcome],
) -> None:
    _, on, off = trained
    assert off.said == ()
    (with_dump,), (without,) = on.result.rollouts[0].ranks, off.result.rollouts[0].ranks
    assert (with_dump.losses, with_dump.log_prob_means) == (without.losses, without.log_prob_means)
    # msProbe's hooks let gradients be summed in another order.
    assert with_dump.grad_norms == pytest.approx(without.grad_norms, rel=1e-5)
    assert not any(report.probe_patch_loaded for rollout in off.result.rollouts for report in rollout.ranks)


def test_only_the_forwards_that_count_are_dumped_by_an_engine(scratch: Path) -> None:
    tree = serving.patched_sglang("F", scratch / "serving" / "tree", MSPROBE)
    dump_path = scratch / "serving" / "dump"
    env = {"DUMP_ON": "1", "PROBE_PATCH_ROLLOUT_CONFIG": str(write_config(dump_path, "L0"))}
    run = {"off": serving.Job(tree, SERVING, {"DUMP_ON": "0"}), "on": serving.Job(tree, SERVING, env)}
    outcomes = serving.run_jobs(run, scratch / "serving")
    assert outcomes["on"].served.numbers() == outcomes["off"].served.numbers()
    assert outcomes["on"].warned("msProbe records")
    assert jobs.dumps_in(dump_path) == [f"rollout/step{step}/rank0" for step in (0, 1)]
    for step, tokens in ((0, 6), (1, 3)):
        data = entries(dump_path, "rollout", step)
        assert {entry.rsplit(".", 1)[1] for entry in data} == {"0"}
        embedded = data["Module.model.embed_tokens.Embedding.forward.0"]["output"][0]
        assert embedded["shape"][0] == tokens
