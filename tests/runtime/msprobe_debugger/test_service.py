"""What msProbe is asked to do, phase by phase, and what becomes of its failures."""

import multiprocessing
from collections.abc import Callable
from pathlib import Path

import pytest
from torch import nn

from probe_patch.dump_format import PHASE_FOLDERS
from probe_patch.runtime.msprobe.debugger import MsprobeDebugger
from probe_patch.runtime.msprobe.service import MsprobeService
from probe_patch.runtime.occasion import ByHand, TrainingPhase
from probe_patch.runtime.ranks import Identity
from probe_patch.runtime.slime import Probe
from tests.runtime.msprobe_debugger.conftest import Configure
from tests.runtime.msprobe_debugger.stand_in import Call, StandInDebugger

REF, OLD, ACTOR = PHASE_FOLDERS.values()


class Rollouts:
    """Phases of slime, started and stopped as its lines do."""

    def __init__(self, service: MsprobeService, dump_path: Path) -> None:
        self.service = service
        self.dump_path = dump_path

    def start(self, folder: str, rank: int | None = 0) -> None:
        occasion = TrainingPhase("ref", None)
        self.service.start(nn.Linear(1, 1), Identity(rank, 1), self.dump_path / folder, occasion)

    def run(self, *folders: str) -> None:
        for folder in folders:
            self.start(folder)
            self.service.stop(None)

    def rollout(self, *folders: str) -> None:
        self.run(*folders)
        self.service.step()


Rolling = Callable[..., Rollouts]


@pytest.fixture
def rolling(msprobe: type[StandInDebugger], configure: Configure) -> Rolling:
    """Makes debuggers of one process, with these keys of config.json; what making them asked of msProbe is gone."""

    def make(**keys: object) -> Rollouts:
        path = configure(**keys)
        service = MsprobeDebugger(path).service
        msprobe.calls.clear()
        return Rollouts(service, path.parent / "dump")

    return make


def recorded(*phases: str, number: int) -> list[Call]:
    """A rollout in which each phase ran once: msProbe's step ends with each."""
    ends: list[Call] = [("number", number)]
    middle = [[*ends, ("start", phase, 0), ("stop",), ("step",)] for phase in phases]
    return [call for calls in middle for call in calls]


def test_each_phase_is_a_step_of_msprobe_with_our_number(
    rolling: Rolling, msprobe: type[StandInDebugger], caplog: pytest.LogCaptureFixture
) -> None:
    rollouts = rolling()
    caplog.clear()
    for number in range(2):
        rollouts.rollout(REF, OLD, ACTOR)
        assert rollouts.service.current_step == number + 1
    assert msprobe.calls == [call for n in range(2) for call in recorded(REF, OLD, ACTOR, number=n)]
    assert caplog.messages == []


def test_a_rollout_without_phases_counts_and_asks_nothing(rolling: Rolling, msprobe: type[StandInDebugger]) -> None:
    rollouts = rolling()
    rollouts.rollout()
    rollouts.rollout(REF)
    assert msprobe.calls == recorded(REF, number=1)


def test_a_phase_that_runs_twice_goes_on_in_its_dump(rolling: Rolling, msprobe: type[StandInDebugger]) -> None:
    rolling().rollout(ACTOR, ACTOR)
    assert msprobe.calls == [("number", 0), *[("start", ACTOR, 0), ("stop",)] * 2, ("step",)]


def test_a_phase_that_comes_again_after_another_one_is_not_overwritten(
    rolling: Rolling, msprobe: type[StandInDebugger], caplog: pytest.LogCaptureFixture
) -> None:
    rollouts = rolling()
    rollouts.rollout(REF, OLD, REF)
    assert msprobe.calls == recorded(REF, OLD, number=0)
    assert "it was recorded before in this step, with another one since" in caplog.messages[-1]
    msprobe.calls.clear()
    rollouts.rollout(REF)
    assert msprobe.calls == recorded(REF, number=1)


@pytest.mark.parametrize(
    ("keys", "steps"),
    [({"step": [1]}, [1]), ({"step": ["0-1"]}, [0, 1]), ({"rank": [1]}, []), ({"rank": [0]}, [0, 1, 2])],
)
def test_what_the_lists_leave_out_is_not_started(
    rolling: Rolling, msprobe: type[StandInDebugger], keys: dict[str, object], steps: list[int]
) -> None:
    rollouts = rolling(**keys)
    for number in range(3):
        assert rollouts.service.selects_this_step(Identity(0, 1)) == (number in steps)
        rollouts.rollout(REF)
    assert [call[1] for call in msprobe.calls if call[0] == "number"] == steps


def test_a_process_without_a_rank_is_told_that_a_list_of_ranks_leaves_it_out(
    rolling: Rolling, msprobe: type[StandInDebugger], caplog: pytest.LogCaptureFixture
) -> None:
    rollouts = rolling(rank=[0])
    rollouts.start(REF, rank=None)
    assert msprobe.calls == []
    assert "config.json lists ranks, and msProbe knows none of this process" in caplog.messages[-1]


def test_with_dump_enable_the_lists_are_msprobes_as_it_reads_the_file_again(
    rolling: Rolling, msprobe: type[StandInDebugger], tmp_path: Path
) -> None:
    rollouts = rolling(step=[7], dump_enable=True)
    msprobe.rereads = str(tmp_path / "dump")
    rollouts.rollout(REF, OLD)
    assert [call for call in msprobe.calls if call[0] == "start"] == [("start", REF, 0), ("start", OLD, 0)]


def test_a_file_read_again_in_the_very_start_does_not_move_the_dump(
    rolling: Rolling, msprobe: type[StandInDebugger], tmp_path: Path
) -> None:
    rollouts = rolling()
    msprobe.rereads = str(tmp_path / "dump")
    rollouts.rollout(REF)
    assert msprobe.calls == [("number", 0), ("start", "dump", 0), ("start", REF, 0), ("stop",), ("step",)]


FAILURES = [
    ("start", "starting msProbe: OSError: disk full"),
    ("stop", "stopping msProbe: OSError: disk full"),
    ("step", "writing msProbe's dump: OSError: disk full"),
]


@pytest.mark.parametrize(("method", "sentence"), FAILURES)
def test_a_failure_of_msprobes_is_one_warning_and_the_run_goes_on(
    rolling: Rolling, msprobe: type[StandInDebugger], caplog: pytest.LogCaptureFixture, method: str, sentence: str
) -> None:
    rollouts = rolling()
    caplog.clear()
    msprobe.failures[method] = OSError("disk full")
    for _ in range(3):
        rollouts.rollout(REF, OLD)
    assert caplog.messages == [f"probe-patch: {sentence}; the run goes on"]
    assert rollouts.service.current_step == 3
    msprobe.failures.clear()
    msprobe.calls.clear()
    rollouts.rollout(REF)
    assert msprobe.calls[-3:] == [("start", REF, 0), ("stop",), ("step",)]


def test_a_start_that_failed_is_stopped(rolling: Rolling, msprobe: type[StandInDebugger]) -> None:
    rollouts = rolling()
    msprobe.failures["start"] = OSError("disk full")
    rollouts.start(REF)
    assert msprobe.calls == [("number", 0), ("start", REF, 0), ("stop",)]


def test_entries_that_could_not_be_written_are_let_go(rolling: Rolling, msprobe: type[StandInDebugger]) -> None:
    rollouts = rolling()
    msprobe.failures["step"] = OSError("disk full")
    rollouts.run(REF, OLD)
    assert msprobe.calls[3:6] == [("step",), ("reset",), ("number", 0)]


def test_if_they_cannot_be_let_go_nothing_is_recorded_over_them(
    rolling: Rolling, msprobe: type[StandInDebugger], caplog: pytest.LogCaptureFixture
) -> None:
    rollouts = rolling()
    msprobe.failures |= {"step": OSError("disk full"), "reset": AttributeError("gone")}
    rollouts.run(REF)
    rollouts.rollout(OLD, ACTOR)
    assert [call for call in msprobe.calls if call[0] == "start"] == [("start", REF, 0)]
    assert any("AttributeError: gone" in message for message in caplog.messages)


def test_a_stop_left_out_is_made_up_for_and_said(
    rolling: Rolling, msprobe: type[StandInDebugger], caplog: pytest.LogCaptureFixture
) -> None:
    rollouts = rolling()
    rollouts.start(REF)
    rollouts.start(OLD)
    rollouts.service.step()
    assert msprobe.calls == recorded(REF, OLD, number=0)
    assert "its stop was not reached" in caplog.messages[-1]


def test_a_start_of_what_runs_changes_nothing(
    rolling: Rolling, msprobe: type[StandInDebugger], caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    service = rolling().service
    caplog.clear()
    for _ in range(2):
        service.start(nn.Linear(1, 1), Identity(0, 1), tmp_path / "dump" / REF, ByHand())
    assert msprobe.calls == [("number", 0), ("start", REF, 0)]
    assert caplog.messages == []


def test_a_second_model_in_the_process_is_not_mixed_in(
    rolling: Rolling, msprobe: type[StandInDebugger], caplog: pytest.LogCaptureFixture
) -> None:
    first, second = rolling(), rolling()
    first.rollout(REF)
    second.rollout(REF)
    assert msprobe.calls == recorded(REF, number=0)
    assert "msProbe has one debugger in a process, which records another model here" in caplog.messages[-1]


def test_a_rank_that_changes_is_not_recorded_under_the_old_one(
    rolling: Rolling, msprobe: type[StandInDebugger], caplog: pytest.LogCaptureFixture
) -> None:
    rollouts = rolling()
    rollouts.rollout(REF)
    msprobe.calls.clear()
    rollouts.start(REF, rank=3)
    assert msprobe.calls == []
    assert "msProbe goes on as rank0, and this process has become rank3" in caplog.messages[-1]


def _hold(folder: Path, ready: "multiprocessing.synchronize.Event", done: "multiprocessing.synchronize.Event") -> None:
    from probe_patch.runtime.claims import claim_folder

    claim = claim_folder(folder, "rank0")
    ready.set()
    done.wait(60)
    assert claim.name == "rank0"


def test_what_another_running_process_writes_is_not_overwritten(
    rolling: Rolling, msprobe: type[StandInDebugger], caplog: pytest.LogCaptureFixture
) -> None:
    rollouts = rolling()
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Event()
    other = context.Process(target=_hold, args=(rollouts.dump_path / REF, ready, done))
    other.start()
    try:
        assert ready.wait(60)
        rollouts.rollout(REF, OLD)
    finally:
        done.set()
        other.join()
    assert msprobe.calls == recorded(OLD, number=0)
    assert "another running process writes rank0 there" in caplog.messages[-1]


def test_what_an_earlier_run_left_is_moved_aside(rolling: Rolling) -> None:
    rollouts = rolling()
    left = rollouts.dump_path / REF / "step5" / "rank0" / "dump.json"
    left.parent.mkdir(parents=True)
    left.write_text("{}")
    rollouts.rollout(REF)
    assert not left.exists()
    assert (rollouts.dump_path / f"{REF}.replaced" / "step5-rank0-1" / "dump.json").exists()


def test_a_folder_that_cannot_be_made_is_a_warning(
    rolling: Rolling, msprobe: type[StandInDebugger], caplog: pytest.LogCaptureFixture
) -> None:
    rollouts = rolling()
    rollouts.dump_path.write_text("in the way")
    rollouts.rollout(REF)
    assert [call for call in msprobe.calls if call[0] == "start"] == []
    assert "starting msProbe: " in caplog.messages[-1]


def test_a_forked_child_leaves_its_parents_recording_alone(
    rolling: Rolling, msprobe: type[StandInDebugger], monkeypatch: pytest.MonkeyPatch
) -> None:
    rollouts = rolling()
    rollouts.start(REF)
    before = list(msprobe.calls)
    monkeypatch.setattr("os.getpid", lambda: -1)
    rollouts.service.stop(None)
    rollouts.rollout(OLD)
    assert msprobe.calls == before


def test_the_lines_of_an_actor_drive_it(
    monkeypatch: pytest.MonkeyPatch, msprobe: type[StandInDebugger], configure: Configure
) -> None:
    class Actor:
        probe = Probe(("ref", "actor"), str(configure()), "msprobe")

        def init(self, role: str) -> None:
            self.debugger = self.probe.debugger(role)
            self.model = [nn.Linear(1, 1)]

        @probe.rollout
        def train_actor(self, rollout_id: int, error: Exception | None) -> int:
            self.probe.start(self, "ref")
            self.probe.stop(self, "ref")
            self.probe.start(self, "actor")
            if error is not None:
                raise error
            self.probe.stop(self, "actor")
            return rollout_id

    monkeypatch.delenv("PROBE_PATCH_TRAIN_CONFIG", raising=False)
    actor = Actor()
    actor.init("actor")
    msprobe.calls.clear()
    assert actor.train_actor(0, None) == 0
    planned = RuntimeError("planned")
    with pytest.raises(RuntimeError) as caught:
        actor.train_actor(1, planned)
    assert caught.value is planned
    assert actor.train_actor(2, None) == 2
    assert msprobe.calls == [call for n in range(3) for call in recorded(REF, ACTOR, number=n)]
