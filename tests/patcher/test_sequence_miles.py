"""The actor of radixark/miles, as published on the package index, patched and run."""

import pytest

from tests.harness.expected_events import with_probe
from tests.harness.method_layers import method_layers
from tests.harness.patching import patched
from tests.harness.recording_probe import RecordingProbe
from tests.harness.run_actor import MILES_PACKAGE, run_actor
from tests.harness.scenarios import DEFAULT, FAILING_SCENARIOS, SCENARIOS, Scenario
from tests.harness.trace import ROLLOUT
from tests.harness.wheels import MILES, MILES_ACTOR, read_from_wheel

# "-": train_actor is not called.
PHASES = {
    "default": "ref+old+actor",
    "one-step": "ref+old+actor",
    "two-steps": "ref+old+actor",
    "rollout-logprobs": "ref+actor",
    "no-ref": "old+actor",
    "teacher": "ref+old+actor",
    "routing-replay": "ref+old+actor",
    "sft": "actor",
    "rollout-only": "-",
    "critic": "-",
    "ref-fails": "ref",
    "old-fails": "ref+old",
    "actor-fails": "ref+old+actor",
}

each_scenario = pytest.mark.parametrize("scenario", (*SCENARIOS, *FAILING_SCENARIOS), ids=lambda scenario: scenario.id)


@pytest.fixture
def source() -> bytes:
    return read_from_wheel(MILES, MILES_ACTOR)


@each_scenario
def test_the_probe_is_asked_around_each_phase_and_once_at_the_end(source: bytes, scenario: Scenario) -> None:
    unpatched = run_actor(source, scenario, package=MILES_PACKAGE)
    trace = run_actor(patched(source), scenario, RecordingProbe, package=MILES_PACKAGE)

    assert ("+".join(unpatched.phases) or "-") == PHASES[scenario.id]
    assert (ROLLOUT in unpatched.events) == (PHASES[scenario.id] != "-")
    assert trace.events == with_probe(unpatched.events, scenario, ("ref", "old", "actor"))
    assert trace.raised is trace.failure
    assert unpatched.raised is unpatched.failure
    assert (trace.debugger is None) == (scenario.role == "critic")


def test_the_default_sequence(source: bytes) -> None:
    assert run_actor(patched(source), DEFAULT, RecordingProbe, package=MILES_PACKAGE).sequence == (
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
    )


@pytest.mark.parametrize("dump_on", [None, "", "0", "off"])
def test_switched_off_it_is_the_actor_it_was(source: bytes, dump_on: str | None) -> None:
    unpatched = run_actor(source, DEFAULT, package=MILES_PACKAGE)
    trace = run_actor(patched(source), DEFAULT, dump_on=dump_on, package=MILES_PACKAGE)

    assert trace.events == unpatched.events
    assert not hasattr(trace.actor, "debugger")
    assert not [name for name in trace.imports if name.startswith("probe_patch")]
    assert method_layers(trace.actor_class, "train_actor") == ("actor.py:train_actor",)
    assert method_layers(trace.actor_class, "init") == method_layers(unpatched.actor_class, "init")
