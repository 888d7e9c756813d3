"""Every version of slime's real actor, patched and run: what the probe is asked, in what order.

Needs ``--slime-clone PATH``, a full clone of THUDM/slime. The unpatched source is the oracle: it says which phases run.
"""

from pathlib import Path

import pytest

from probe_patch.dump_format import Phase
from tests.harness.eras import RAISES_BY_ITSELF, ActorVersion, actor_versions, expected_phases, first_of_each_era
from tests.harness.expected_events import with_probe
from tests.harness.method_layers import method_layers
from tests.harness.patching import patched
from tests.harness.recording_probe import RecordingProbe
from tests.harness.run_actor import run_actor
from tests.harness.scenarios import DEFAULT, FAILING_SCENARIOS, SCENARIOS, Scenario
from tests.harness.slime_clone import CLONE_OPTION, read_blob
from tests.harness.trace import ROLLOUT, Event

ALL_SCENARIOS = (*SCENARIOS, *FAILING_SCENARIOS)
NO_CLONE = f"needs {CLONE_OPTION} PATH, a full clone of THUDM/slime"
ALL_PHASES: tuple[Phase, ...] = ("ref", "old", "actor")

each_scenario = pytest.mark.parametrize("scenario", ALL_SCENARIOS, ids=lambda scenario: scenario.id)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One skipped test, not thousands, where there is no clone; patching for each single phase is tried once an era."""
    if "version" not in metafunc.fixturenames:
        return
    if metafunc.config.getoption(CLONE_OPTION) is None:
        versions = [pytest.param(None, marks=pytest.mark.skip(reason=NO_CLONE), id="no-clone")]
    else:
        chosen = first_of_each_era() if "phase" in metafunc.fixturenames else actor_versions()
        versions = [pytest.param(version, id=version.id) for version in chosen]
    # With this scope all tests of one version follow each other, so each version is compiled and patched once.
    metafunc.parametrize("version", versions, scope="module")


@pytest.fixture
def clone(request: pytest.FixtureRequest) -> Path:
    path: Path | None = request.config.getoption(CLONE_OPTION)
    return path or pytest.skip(NO_CLONE)


@pytest.fixture
def source(clone: Path, version: ActorVersion) -> bytes:
    return read_blob(clone, version.blob)


@each_scenario
def test_an_unpatched_actor_runs_the_phases_of_its_era(
    version: ActorVersion, source: bytes, scenario: Scenario
) -> None:
    trace = run_actor(source, scenario)

    ran = "+".join(trace.phases) or ("none" if ROLLOUT in trace.events else "-")
    assert ran == expected_phases(version.era, scenario.id)
    raises_by_itself = RAISES_BY_ITSELF.get((scenario.id, version.blob[:8]))
    if raises_by_itself is None:
        assert trace.raised is trace.failure
    else:
        assert type(trace.raised) is raises_by_itself


@each_scenario
def test_a_patched_actor_starts_and_stops_each_phase_and_steps_once(
    version: ActorVersion, source: bytes, scenario: Scenario
) -> None:
    unpatched = run_actor(source, scenario)
    trace = run_actor(patched(source), scenario, RecordingProbe)

    assert trace.events == with_probe(unpatched.events, scenario, ALL_PHASES)
    assert trace.own_events == unpatched.events
    if scenario.fail_in is None:
        assert repr(trace.raised) == repr(unpatched.raised)
    else:
        assert trace.raised is trace.failure
    assert (trace.debugger is None) == (scenario.role == "critic")


@pytest.mark.parametrize("phase", ALL_PHASES)
def test_only_the_phase_asked_for_is_touched(version: ActorVersion, source: bytes, phase: Phase) -> None:
    trace = run_actor(patched(source, (phase,)), DEFAULT, RecordingProbe)

    assert trace.events == with_probe(run_actor(source, DEFAULT).events, DEFAULT, (phase,))
    assert ("start", phase) in trace.events


@each_scenario
def test_switched_off_a_patched_actor_is_the_actor_it_was(
    version: ActorVersion, source: bytes, scenario: Scenario
) -> None:
    unpatched = run_actor(source, scenario)
    trace = run_actor(patched(source), scenario)

    assert trace.events == unpatched.events
    assert repr(trace.raised) == repr(unpatched.raised)
    assert not hasattr(trace.actor, "debugger")
    assert not [name for name in trace.imports if name.startswith("probe_patch")]
    for method in ("init", "train", "train_actor"):
        if hasattr(trace.actor_class, method):
            assert method_layers(trace.actor_class, method) == method_layers(unpatched.actor_class, method)
    rollout = "train_actor" if hasattr(trace.actor_class, "train_actor") else "train"
    assert method_layers(trace.actor_class, rollout) == (f"actor.py:{rollout}",)


# The same once more, spelled out for a few versions that differ.
EXAMPLES: tuple[tuple[str, str, tuple[Event, ...]], ...] = (
    (
        "E3",
        "default",
        (
            ("init", "actor"),
            ("enter",),
            ("start", "ref"),
            ("compute_log_prob", "ref_"),
            ("stop", "ref"),
            ("start", "old"),
            ("compute_log_prob", ""),
            ("stop", "old"),
            ("start", "actor"),
            ("train",),
            ("stop", "actor"),
            ("finish",),
            ("step",),
        ),
    ),
    (
        "E11",
        "old-fails",
        (
            ("init", "actor"),
            ("enter",),
            ("start", "ref"),
            ("compute_log_prob", "ref_"),
            ("stop", "ref"),
            ("start", "old"),
            ("compute_log_prob", ""),
            ("finish",),
            ("step",),
        ),
    ),
    ("E14", "rollout-only", (("init", "actor"),)),
    ("E15", "critic", (("init", "critic"),)),
    (
        "E15",
        "one-step",
        (
            ("init", "actor"),
            ("enter",),
            ("start", "ref"),
            ("compute_log_prob", "ref_"),
            ("stop", "ref"),
            ("start", "actor"),
            ("train",),
            ("stop", "actor"),
            ("finish",),
            ("step",),
        ),
    ),
)


@pytest.mark.parametrize(
    ("era", "scenario_id", "sequence"), EXAMPLES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_examples(era: str, scenario_id: str, clone: Path, sequence: tuple[Event, ...]) -> None:
    first = next(version for version in first_of_each_era() if version.era == era)
    scenario = next(scenario for scenario in ALL_SCENARIOS if scenario.id == scenario_id)

    assert run_actor(patched(read_blob(clone, first.blob)), scenario, RecordingProbe).sequence == sequence
