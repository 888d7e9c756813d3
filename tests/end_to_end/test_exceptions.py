"""A phase that raises in its second micro-batch: what comes out, what is on disk, and what the next rollout does."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from probe_patch.demo.fixture import ERAS, lay_out
from probe_patch.dump_format import PHASE_FOLDERS, Phase
from tests.end_to_end.jobs import (
    OFF,
    Job,
    Outcome,
    dump_into,
    dumps_in,
    parameter_norms,
    patched_tree,
    read_phase,
    run_jobs,
)

PHASES: tuple[Phase, ...] = ("ref", "old", "actor")
# The four micro-batches of each of the 42 modules that are called, the root too, or the one before the failure.
WHOLE, CUT = 4 * 42, 42

each_failure = pytest.mark.parametrize("phase", PHASES)
each_era = pytest.mark.parametrize("era", ERAS)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("failing")


@pytest.fixture(scope="module")
def outcomes(scratch: Path) -> dict[str, Outcome]:
    return run_jobs({name: job for era in ERAS for name, job in _jobs(era, scratch)}, scratch / "results")


def _jobs(era: str, scratch: Path) -> Iterator[tuple[str, Job]]:
    plain = lay_out(era, scratch / "plain" / era)
    patched = patched_tree(era, scratch / "patched" / era)
    for phase in PHASES:
        fails_then_runs = [{"fail_in": phase}, {}]
        yield f"{era}: {phase}: unpatched", Job(plain, [], {}, fails_then_runs)
        yield f"{era}: {phase}: off", Job(patched, [], OFF, fails_then_runs)
        config = dump_into(_dump(scratch, era, phase))
        env = {"DUMP_ON": "1", "PROBE_PATCH_TRAIN_CONFIG": str(config)}
        yield f"{era}: {phase}: on", Job(patched, [], env, fails_then_runs)
    config = dump_into(_dump(scratch, era, "train_py"))
    env = {"DUMP_ON": "1", "PROBE_PATCH_TRAIN_CONFIG": str(config)}
    yield f"{era}: train.py", Job(patched, ["--num-rollout", "2", "--fail-in", "old"], env)


def _dump(scratch: Path, era: str, name: str) -> Path:
    return scratch / "dumps" / era / name


@each_era
@each_failure
def test_the_same_exception_comes_out_and_the_same_bits_follow_it(
    outcomes: dict[str, Outcome], era: str, phase: Phase
) -> None:
    unpatched, off, on = (outcomes[f"{era}: {phase}: {mode}"] for mode in ("unpatched", "off", "on"))
    for outcome in (unpatched, off, on):
        assert [rollout.error for rollout in outcome.result.rollouts] == [
            f"PlantedFailure: planted in micro-batch 1 of phase {phase}",
            None,
        ]
    assert unpatched.result.numbers() == off.result.numbers() == on.result.numbers()
    assert on.said == ()
    assert on.hooks == unpatched.hooks
    assert on.hooks is not None


@each_era
@each_failure
def test_what_came_before_the_exception_is_on_disk(
    outcomes: dict[str, Outcome], scratch: Path, era: str, phase: Phase
) -> None:
    dump_path = _dump(scratch, era, phase)
    for earlier in PHASES[: PHASES.index(phase)]:
        dump = read_phase(dump_path, earlier, 0)
        assert (len(dump.data), dump.meta["ended_by_exception"]) == (WHOLE, None)
    cut = read_phase(dump_path, phase, 0)
    assert (len(cut.data), cut.meta["ended_by_exception"]) == (CUT, "PlantedFailure")
    assert all(entry.endswith(".forward.0") and record["output"] for entry, record in cut.data.items())
    assert (cut.meta["entries"], cut.meta["problems"]) == (CUT, [])
    for later in PHASES[PHASES.index(phase) + 1 :]:
        assert not (dump_path / PHASE_FOLDERS[later] / "step0").exists()


@each_era
@each_failure
def test_the_failed_rollout_was_one_step(outcomes: dict[str, Outcome], scratch: Path, era: str, phase: Phase) -> None:
    dump_path = _dump(scratch, era, phase)
    ran_first = PHASES[: PHASES.index(phase) + 1]
    assert dumps_in(dump_path) == sorted(
        [f"{PHASE_FOLDERS[ran]}/step0/rank0" for ran in ran_first]
        + [f"{PHASE_FOLDERS[ran]}/step1/rank0" for ran in PHASES]
    )
    for following in PHASES:
        dump = read_phase(dump_path, following, 1)
        assert (len(dump.data), dump.meta["ended_by_exception"], dump.meta["rollout_id"]) == (WHOLE, None, 1)
        assert {entry.rpartition(".")[2] for entry in dump.data} == {"0", "1", "2", "3"}


@each_era
def test_the_next_rollout_is_dumped_as_if_nothing_had_been(
    outcomes: dict[str, Outcome], scratch: Path, era: str
) -> None:
    """The reference model never changes, so its dump after a failure in it is the one that was cut short, in full."""
    cut, whole = (read_phase(_dump(scratch, era, "ref"), "ref", step) for step in (0, 1))
    assert parameter_norms(cut) == parameter_norms(whole)
    assert len(parameter_norms(whole)) == 19


@each_era
def test_slimes_own_loop_ends_at_the_exception_and_so_does_the_dump(
    outcomes: dict[str, Outcome], scratch: Path, era: str
) -> None:
    result = outcomes[f"{era}: train.py"].result
    assert result.error == "PlantedFailure: planted in micro-batch 1 of phase old"
    dump_path = _dump(scratch, era, "train_py")
    assert dumps_in(dump_path) == ["old_log_prob/step0/rank0", "ref_compute_log_prob/step0/rank0"]
    assert read_phase(dump_path, "old", 0).meta["ended_by_exception"] == "PlantedFailure"
