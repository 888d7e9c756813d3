"""slime with a teacher in the actor and a critic in a process beside it, both told to dump into the same folder."""

import json
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from probe_patch.demo.fixture import lay_out
from probe_patch.dump_format import PHASE_FOLDERS, Phase
from tests.end_to_end.jobs import Job, Outcome, dumps_in, parameter_norms, patched_tree, read_phase, run_jobs
from tests.frameworks.agreement import entries
from tests.runtime.dumps import DumpOnDisk

# Those that can have a teacher.
ERAS = ("E14", "E15", "miles")
PHASES: tuple[Phase, ...] = ("ref", "old", "actor")
ROLLOUTS = 2
MICRO_BATCHES = 4
FLAGS: Mapping[str, list[str]] = {"actor": ["--use-opd"], "critic": ["--role", "critic"]}

each_era = pytest.mark.parametrize("era", ERAS)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("roles")


@pytest.fixture(scope="module")
def outcomes(scratch: Path) -> dict[str, Outcome]:
    """Of each role in each era, unpatched and dumping; the roles run at the same time."""
    trees = {era: (lay_out(era, scratch / "plain" / era), patched_tree(era, scratch / "patched" / era)) for era in ERAS}
    with ThreadPoolExecutor() as pool:
        running = [pool.submit(run_jobs, _jobs(role, trees, scratch), scratch / role) for role in FLAGS]
    return {name: outcome for run in running for name, outcome in run.result().items()}


def _jobs(role: str, trees: Mapping[str, tuple[Path, Path]], scratch: Path) -> dict[str, Job]:
    flags = ["--num-rollout", str(ROLLOUTS), *FLAGS[role]]
    jobs = {}
    for era, (plain, patched) in trees.items():
        config = scratch / f"{role} {era}.json"
        keys = {"level": "mix", "dump_path": str(_dump_path(scratch, era)), "step": []}
        config.write_text(json.dumps({**keys, "statistics": {"data_mode": ["all"]}}))
        jobs[f"{role} {era} unpatched"] = Job(plain, flags)
        jobs[f"{role} {era}"] = Job(patched, flags, {"DUMP_ON": "1", "PROBE_PATCH_TRAIN_CONFIG": str(config)})
    return jobs


def _dump_path(scratch: Path, era: str) -> Path:
    return scratch / "dumps" / era


@pytest.fixture
def dumps(outcomes: dict[str, Outcome], scratch: Path, era: str) -> list[dict[Phase, DumpOnDisk]]:
    """By rollout."""
    folder = _dump_path(scratch, era)
    return [{phase: read_phase(folder, phase, step) for phase in PHASES} for step in range(ROLLOUTS)]


@each_era
@pytest.mark.parametrize("role", FLAGS)
def test_both_roles_compute_the_same_bits_as_unpatched(outcomes: dict[str, Outcome], era: str, role: str) -> None:
    plain, dumping = outcomes[f"{role} {era} unpatched"].result, outcomes[f"{role} {era}"].result
    assert (plain.error, dumping.error) == (None, None)
    assert dumping.numbers() == plain.numbers()
    assert [rank.dump_on for rollout in dumping.rollouts for rank in rollout.ranks] == ["1"] * ROLLOUTS
    assert outcomes[f"{role} {era}"].said == ()
    assert ("teacher" in dumping.phases()) == (role == "actor")


@each_era
def test_only_the_actor_writes_and_only_its_three_phases(
    dumps: list[dict[Phase, DumpOnDisk]], scratch: Path, era: str
) -> None:
    folder = _dump_path(scratch, era)
    expected = sorted(f"{PHASE_FOLDERS[phase]}/step{step}/rank0" for phase in PHASES for step in range(ROLLOUTS))
    assert dumps_in(folder) == expected
    assert sorted({str(path.parent.relative_to(folder)) for path in folder.rglob("*.json")}) == expected
    assert len({dump.meta["pid"] for rollout in dumps for dump in rollout.values()}) == 1
    for step, rollout in enumerate(dumps):
        for phase, dump in rollout.items():
            assert (dump.meta["phase"], dump.meta["rollout_id"], dump.meta["problems"]) == (phase, step, [])


@each_era
def test_each_phase_holds_its_own_weights_and_never_the_teachers(
    dumps: list[dict[Phase, DumpOnDisk]], era: str
) -> None:
    """The reference model is the actor's first weights times 0.9, the teacher those times 1.1."""
    first = parameter_norms(dumps[0]["old"])
    reference = {name: pytest.approx(0.9 * norm, rel=1e-6) for name, norm in first.items()}
    teacher = {name: pytest.approx(1.1 * norm, rel=1e-6) for name, norm in first.items()}
    for rollout in dumps:
        for phase, dump in rollout.items():
            for call in range(MICRO_BATCHES):
                norms = parameter_norms(_modules_only(dump), call)
                assert (norms == reference) == (phase == "ref")
                assert norms != teacher
                if phase != "ref":
                    assert norms == parameter_norms(_modules_only(rollout["old"]))


@each_era
def test_each_phase_holds_its_own_calls_and_no_others(dumps: list[dict[Phase, DumpOnDisk]], era: str) -> None:
    for rollout in dumps:
        for phase, dump in rollout.items():
            calls = Counter(entry.rpartition(".forward.")[0] for entry in entries(dump, "forward"))
            assert set(calls.values()) == {MICRO_BATCHES}
            gradients = Counter(entry.rpartition(".parameters_grad.")[0] for entry in entries(dump, "parameters_grad"))
            assert set(gradients.values()) == ({MICRO_BATCHES} if phase == "actor" else set())
            assert bool(entries(dump, "backward")) == (phase == "actor")
        # Each phase is one forward pass over the rollout; the teacher's in between would count as well.
        products = {phase: _products(dump) for phase, dump in rollout.items()}
        assert products["ref"] == products["old"] == products["actor"]
        assert len(products["ref"]) > MICRO_BATCHES


def _products(dump: DumpOnDisk) -> set[str]:
    return {entry for entry in dump.data if entry.startswith("Torch.matmul.") and entry.endswith(".forward")}


def _modules_only(dump: DumpOnDisk) -> DumpOnDisk:
    data = {entry: record for entry, record in dump.data.items() if entry.startswith("Module.")}
    return replace(dump, dump={**dump.dump, "data": data})
