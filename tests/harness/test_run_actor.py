"""The harness itself, on an actor small enough to read."""

import logging
import os
import sys
from dataclasses import replace

import pytest

from tests.harness.expected_events import with_probe
from tests.harness.method_layers import method_layers
from tests.harness.process_state import PROBE_MODULE
from tests.harness.recording_probe import RecordingProbe
from tests.harness.run_actor import run_actor
from tests.harness.scenarios import DEFAULT, FAILING_SCENARIOS, Scenario
from tests.harness.trace import Event

ACTOR = b"""
import logging
import os

import torch

from .data import get_data_iterator
from .model import forward_only, train
from slime.ray.train_actor import TrainRayActor
from slime.utils.timer import timer, with_defer

logging.getLogger("megatron").setLevel(logging.ERROR)


class TinyTrainRayActor(TrainRayActor):
    @with_defer(lambda: None)
    def init(self, args, role, with_ref=False):
        super().init(args, role, with_ref)
        print("noise")
        os.environ["ROUTING_REPLAY_STAGE"] = "record"

    @torch.no_grad()
    def compute_log_prob(self, data_iterator, num_microbatches, store_prefix=""):
        return forward_only(None, self.args, None, data_iterator, num_microbatches, store_prefix=store_prefix)

    def train(self, rollout_id, rollout_data_ref):
        if self.role == "critic":
            self.train_critic()
        else:
            self.train_actor(rollout_id, {})

    def train_critic(self):
        train(0)

    def train_actor(self, rollout_id, rollout_data):
        data_iterator, num_microbatches = get_data_iterator(rollout_data)
        rollout_data.update(self.compute_log_prob(data_iterator, num_microbatches, store_prefix="ref_"))
        rollout_data.update(self.compute_log_prob(data_iterator, num_microbatches, store_prefix="teacher_"))
        rollout_data.update(self.compute_log_prob(data_iterator, num_microbatches))
        with timer("actor_train"):
            train(rollout_id)
"""

PRELUDE = b"""
import os

_probe_patch = None
if os.environ.get("DUMP_ON"):
    from probe_patch.runtime.slime import Probe

    _probe_patch = Probe(phases=("ref",), config=None, debugger="builtin")


def _probe_patch_rollout(train):
    return _probe_patch.rollout(train) if _probe_patch else train
"""
INIT = b"        self.debugger = _probe_patch.debugger(role) if _probe_patch else None\n"
DECORATOR = b"    @_probe_patch_rollout\n"
START = b'        if _probe_patch: _probe_patch.start(self, "ref")\n'
STOP = b'        if _probe_patch: _probe_patch.stop(self, "ref")\n'

BEFORE_INIT = b"        super().init("
BEFORE_ROLLOUT = b"    def train_actor("
BEFORE_REF = (
    b'        rollout_data.update(self.compute_log_prob(data_iterator, num_microbatches, store_prefix="ref_"))\n'
)
BEFORE_TEACHER = BEFORE_REF.replace(b"ref_", b"teacher_")


def patch(*added: tuple[bytes, bytes]) -> bytes:
    """The tiny actor behind the prelude, each first text put before each second one."""
    source = ACTOR
    for text, before in added:
        assert source.count(before) == 1
        source = source.replace(before, text + before)
    return PRELUDE + source


PATCHED = patch((INIT, BEFORE_INIT), (DECORATOR, BEFORE_ROLLOUT), (START, BEFORE_REF), (STOP, BEFORE_TEACHER))

UNPATCHED_EVENTS: tuple[Event, ...] = (
    ("rollout",),
    ("compute_log_prob", "ref_"),
    ("compute_log_prob", "teacher_"),
    ("compute_log_prob", ""),
    ("train",),
)


def test_an_unpatched_actor() -> None:
    trace = run_actor(ACTOR, DEFAULT)

    assert trace.events == UNPATCHED_EVENTS
    assert trace.phases == ("ref", "old", "actor")
    assert trace.raised is None


def test_a_patched_actor() -> None:
    trace = run_actor(PATCHED, DEFAULT, RecordingProbe)

    assert trace.events == (
        ("init", "actor"),
        ("rollout",),
        ("enter",),
        ("start", "ref"),
        ("compute_log_prob", "ref_"),
        ("stop", "ref"),
        ("compute_log_prob", "teacher_"),
        ("compute_log_prob", ""),
        ("train",),
        ("finish",),
        ("step",),
    )
    assert trace.events == with_probe(UNPATCHED_EVENTS, DEFAULT, ("ref",))
    assert trace.own_events == UNPATCHED_EVENTS
    assert trace.debugger is not None
    assert method_layers(trace.actor_class, "train_actor") == ("recording_probe.py:call", "actor.py:train_actor")
    assert PROBE_MODULE in trace.imports


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(patch((DECORATOR, BEFORE_ROLLOUT), (START, BEFORE_REF), (STOP, BEFORE_TEACHER)), id="no-debugger"),
        pytest.param(patch((INIT, BEFORE_INIT), (START, BEFORE_REF), (STOP, BEFORE_TEACHER)), id="no-step"),
        pytest.param(patch((INIT, BEFORE_INIT), (DECORATOR, BEFORE_ROLLOUT), (START, BEFORE_REF)), id="no-stop"),
        pytest.param(
            patch((INIT, BEFORE_INIT), (DECORATOR, BEFORE_ROLLOUT), (START + STOP, BEFORE_TEACHER)), id="start-too-late"
        ),
        pytest.param(PATCHED.replace(START, START * 2), id="started-twice"),
        pytest.param(PATCHED.replace(DECORATOR, DECORATOR * 2), id="stepped-twice"),
    ],
)
def test_a_wrong_patch_is_seen(wrong: bytes) -> None:
    trace = run_actor(wrong, DEFAULT, RecordingProbe)

    assert trace.raised is None
    assert trace.events != with_probe(UNPATCHED_EVENTS, DEFAULT, ("ref",))


@pytest.mark.parametrize("scenario", FAILING_SCENARIOS, ids=lambda scenario: scenario.id)
def test_a_failing_phase_comes_out_as_the_object_it_raised(scenario: Scenario) -> None:
    trace = run_actor(PATCHED, scenario, RecordingProbe)

    assert trace.raised is trace.failure is not None
    assert trace.phases[-1] == scenario.fail_in
    assert trace.events[-2:] == (("finish",), ("step",))
    assert (("stop", "ref") in trace.events) == (scenario.fail_in != "ref")


def test_an_exception_that_gets_replaced_on_its_way_is_seen() -> None:
    replaces = PATCHED.replace(
        b"            train(rollout_id)\n",
        b"            try: train(rollout_id)\n            except Exception as e: raise OSError from e\n",
    )

    trace = run_actor(replaces, replace(DEFAULT, fail_in="actor"), RecordingProbe)

    assert isinstance(trace.raised, OSError)
    assert trace.raised is not trace.failure


def test_the_critics_training_is_no_phase() -> None:
    trace = run_actor(PATCHED, Scenario("critic", role="critic"), RecordingProbe)

    assert trace.events == (("init", "critic"), ("train_critic",))
    assert trace.debugger is None


def test_switched_off_the_class_holds_the_functions_of_its_file() -> None:
    trace = run_actor(PATCHED, DEFAULT)

    assert trace.events == UNPATCHED_EVENTS
    assert PROBE_MODULE not in trace.imports
    assert method_layers(trace.actor_class, "train_actor") == ("actor.py:train_actor",)
    assert method_layers(trace.actor_class, "init") == ("slime_helpers.py:call", "actor.py:init")


def test_relative_imports_are_resolved_in_the_package_given() -> None:
    assert "slime.backends.megatron_utils.model" in run_actor(ACTOR, DEFAULT).imports
    assert "other.place.model" in run_actor(ACTOR, DEFAULT, package="other.place").imports


@pytest.mark.parametrize("scenario", [DEFAULT, *FAILING_SCENARIOS], ids=lambda scenario: scenario.id)
@pytest.mark.parametrize("probe", [None, RecordingProbe])
def test_the_process_is_left_as_it_was(
    scenario: Scenario,
    probe: type[RecordingProbe] | None,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DUMP_ON", "perhaps")
    environment = dict(os.environ)
    modules = dict(sys.modules)
    finders = list(sys.meta_path)
    level = logging.getLogger("megatron").level

    run_actor(PATCHED, scenario, probe)

    assert dict(os.environ) == environment
    assert dict(sys.modules) == modules
    assert sys.meta_path == finders
    assert logging.getLogger("megatron").level == level
    assert capsys.readouterr() == ("", "")


def test_a_file_that_cannot_be_imported_says_so_and_leaves_nothing_behind() -> None:
    before = sys.modules.get(PROBE_MODULE)
    with pytest.raises(ZeroDivisionError):
        run_actor(b"1 / 0\n" + ACTOR, DEFAULT, RecordingProbe)

    assert sys.modules.get(PROBE_MODULE) is before


def test_two_runs_are_the_same() -> None:
    assert run_actor(PATCHED, DEFAULT, RecordingProbe).events == run_actor(PATCHED, DEFAULT, RecordingProbe).events
