"""The real probe in patched actors, everything around them stubbed: what it asks of the recording, in what order."""

from pathlib import Path

import pytest

from probe_patch.debuggers import DebuggerName
from probe_patch.demo.fixture import actor_file, lay_out
from probe_patch.patcher.request import parse_phases
from probe_patch.runtime.capture.names import Model
from probe_patch.runtime.debugger import PrecisionDebugger
from probe_patch.runtime.occasion import TrainingPhase
from probe_patch.runtime.ranks import Identity
from probe_patch.runtime.service import Service
from probe_patch.runtime.slime import Probe
from tests.end_to_end.jobs import dump_into
from tests.harness.patching import patched
from tests.harness.recording_probe import ProbeMaker
from tests.harness.run_actor import MILES_PACKAGE, SLIME_PACKAGE, run_actor
from tests.harness.scenarios import FAILING_SCENARIOS, SCENARIOS
from tests.harness.trace import Event, Recorder
from tests.harness.wheels import MILES, MILES_ACTOR, read_from_wheel

SCENARIO = {scenario.id: scenario for scenario in (*SCENARIOS, *FAILING_SCENARIOS)}

# Each phase stands between a start and a stop; at its end the rollout stops what may still run, and steps.
REF: tuple[Event, ...] = (("start", "ref_compute_log_prob", "0"), ("compute_log_prob", "ref_"), ("stop", "None"))
OLD: tuple[Event, ...] = (("start", "old_log_prob", "0"), ("compute_log_prob", ""), ("stop", "None"))
ACTOR: tuple[Event, ...] = (("start", "actor_train", "0"), ("train",), ("stop", "None"))
END: tuple[Event, ...] = (("stop", "None"), ("step",))
FAILED: tuple[Event, ...] = (("stop", "PhaseFailed"), ("step",))
SEQUENCES: dict[str, tuple[Event, ...]] = {
    "default": (*REF, *OLD, *ACTOR, *END),
    "no-ref": (*OLD, *ACTOR, *END),
    "sft": (*ACTOR, *END),
    "ref-fails": (*REF[:2], *FAILED),
    "old-fails": (*REF, *OLD[:2], *FAILED),
    "actor-fails": (*REF, *OLD, *ACTOR[:2], *FAILED),
}


@pytest.fixture
def given_to_stop() -> list[BaseException | None]:
    return []


@pytest.fixture
def real_probe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given_to_stop: list[BaseException | None]
) -> ProbeMaker:
    """The runtime's own probe and debugger; only starting, stopping and stepping the recording are written down."""
    monkeypatch.setenv("PROBE_PATCH_TRAIN_CONFIG", str(dump_into(tmp_path / "dump")))

    def make(recorder: Recorder, *, phases: tuple[str, ...], config: str | None, debugger: DebuggerName) -> Probe:
        def start(self: Service, model: Model, identity: Identity, folder: Path, occasion: TrainingPhase) -> None:
            recorder.events.append(("start", folder.name, str(occasion.rollout_id)))

        def stop(self: Service, ended_by: BaseException | None) -> None:
            given_to_stop.append(ended_by)
            recorder.events.append(("stop", "None" if ended_by is None else type(ended_by).__name__))

        monkeypatch.setattr(Service, "start", start)
        monkeypatch.setattr(Service, "stop", stop)
        monkeypatch.setattr(Service, "step", lambda self: recorder.events.append(("step",)))
        return Probe(parse_phases(",".join(phases)), config, debugger)

    return make


@pytest.fixture(params=["E3", "E7", "E10", "miles, the published one"])
def actor(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[bytes, str]:
    """A source, and the package it belongs to. Later eras' example trees hide the calls the harness stubs."""
    if request.param.startswith("miles"):
        return read_from_wheel(MILES, MILES_ACTOR), MILES_PACKAGE
    return (lay_out(request.param, tmp_path / "tree") / actor_file(request.param)).read_bytes(), SLIME_PACKAGE


@pytest.mark.parametrize("scenario", SEQUENCES)
def test_sequence(
    actor: tuple[bytes, str], real_probe: ProbeMaker, given_to_stop: list[BaseException | None], scenario: str
) -> None:
    source, package = actor
    trace = run_actor(patched(source), SCENARIO[scenario], real_probe, package=package)
    assert trace.sequence == SEQUENCES[scenario]
    assert trace.own_events == run_actor(source, SCENARIO[scenario], package=package).events
    assert trace.raised is trace.failure
    assert given_to_stop[-1] is trace.failure
    assert isinstance(trace.debugger, PrecisionDebugger)


def test_the_critic_asks_for_nothing(actor: tuple[bytes, str], real_probe: ProbeMaker) -> None:
    source, package = actor
    trace = run_actor(patched(source), SCENARIO["critic"], real_probe, package=package)
    assert trace.events == run_actor(source, SCENARIO["critic"], package=package).events
    assert trace.debugger is None
