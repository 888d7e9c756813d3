"""The lines a patched actor has, on a small actor of our own, in every way a rollout can go."""

import asyncio
import inspect
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from torch import nn

from probe_patch.dump_format import PHASE_FOLDERS, Phase
from probe_patch.errors import ConfigError
from probe_patch.runtime.debugger import PrecisionDebugger
from probe_patch.runtime.service import Service
from probe_patch.runtime.slime import Probe
from tests.runtime.dumps import DumpOnDisk, read_dump
from tests.runtime.memory import blocks_on_devices
from tests.runtime.toys import Around, Echo, Fails, ones

PHASES: tuple[Phase, ...] = ("ref", "old", "actor")


def slime_args(**settings: bool) -> SimpleNamespace:
    off = {"use_rollout_logprobs": False, "get_mismatch_metrics": False, "debug_rollout_only": False}
    return SimpleNamespace(**{**off, "compute_advantages_and_returns": True, **settings})


class PatchedActor:
    """What the patcher makes of slime's actor: ``runs`` are the phases of each rollout, in order.

    The rollout raises ``error`` inside the phase ``fails_in``.
    """

    probe: Probe

    def init(self, role: str, args: SimpleNamespace) -> None:
        self.debugger = self.probe.debugger(role)
        self.args = args
        self.fails = Fails()
        self.model = [Around(self.fails)]
        self.error = RuntimeError("planned")

    def rollout(self, rollout_id: int, runs: tuple[Phase, ...] = PHASES, fails_in: Phase | None = None) -> str:
        for phase in runs:
            self.fails.error = self.error if phase == fails_in else None
            self.probe.start(self, phase)
            self.model[0](ones(1))
            self.probe.stop(self, phase)
        return f"rollout {rollout_id}"


@pytest.fixture(autouse=True)
def dump_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RANK", "0")
    path = tmp_path / "dump"
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"level": "L0", "dump_path": str(path), "step": []}), encoding="utf-8")
    monkeypatch.setenv("PROBE_PATCH_TRAIN_CONFIG", str(config))
    return path


def patched(
    phases: tuple[Phase, ...] = PHASES,
    config: str | None = None,
    role: str = "actor",
    args: SimpleNamespace | None = None,
) -> Any:
    class Actor(PatchedActor):
        probe = Probe(phases, config)
        train_actor = probe.rollout(PatchedActor.rollout)

    actor = Actor()
    actor.init(role, args or slime_args())
    return actor


def read_phase(dump_path: Path, phase: Phase, step: int = 0) -> DumpOnDisk:
    return read_dump(dump_path / PHASE_FOLDERS[phase] / f"step{step}" / "rank0")


MISSED = "its stop was not reached, so forwards behind the phase may be in this dump"
ENTRY = "Module.0.inner.Fails.forward.0"
ROOT_ENTRY = "Module.0.Around.forward.0"


def test_each_phase_has_its_own_folder_and_counts_from_0(dump_path: Path) -> None:
    actor = patched()
    for rollout_id in (10, 11):
        assert actor.train_actor(rollout_id) == f"rollout {rollout_id}"
    assert sorted(path.name for path in dump_path.glob("[!.]*")) == sorted(PHASE_FOLDERS.values())
    for step, rollout_id in enumerate((10, 11)):
        for phase in PHASES:
            dump = read_phase(dump_path, phase, step)
            assert list(dump.data) == list(dump.construct)[::-1] == [ENTRY, ROOT_ENTRY]
            assert (dump.meta["phase"], dump.meta["step"], dump.meta["rollout_id"]) == (phase, step, rollout_id)
            assert (dump.meta["ended_by_exception"], dump.meta["problems"]) == (None, [])


def test_a_phase_that_runs_twice_in_a_rollout_goes_on_counting(dump_path: Path) -> None:
    patched().train_actor(0, runs=("actor", "actor"))
    entries = [entry.rpartition(".")[0] for entry in (ENTRY, ROOT_ENTRY)]
    assert list(read_phase(dump_path, "actor").data) == [f"{entry}.{call}" for call in (0, 1) for entry in entries]


def test_the_rollout_id_is_known_by_keyword_too(dump_path: Path) -> None:
    patched().train_actor(rollout_id=5)
    assert read_phase(dump_path, "ref").meta["rollout_id"] == 5


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("error", [ValueError("planned"), KeyboardInterrupt(), SystemExit(3)])
def test_an_exception_passes_through_and_what_came_before_it_is_on_disk(
    dump_path: Path, phase: Phase, error: BaseException
) -> None:
    actor = patched()
    actor.error = error
    with pytest.raises(type(error)) as caught:
        actor.train_actor(0, fails_in=phase)
    assert caught.value is error
    done = PHASES[: PHASES.index(phase)]
    assert [read_phase(dump_path, earlier).meta["ended_by_exception"] for earlier in done] == [None] * len(done)
    cut = read_phase(dump_path, phase)
    assert cut.meta["ended_by_exception"] == type(error).__name__
    assert "input_args" in cut.data[ENTRY]
    assert not actor.fails._forward_hooks
    actor.train_actor(1)
    following = read_phase(dump_path, phase, step=1)
    assert list(following.data) == [ENTRY, ROOT_ENTRY]
    assert following.meta["rollout_id"] == 1


@pytest.mark.parametrize("runs", [(), ("ref",), PHASES])
def test_every_call_is_one_step_whatever_ran(runs: tuple[Phase, ...]) -> None:
    actor = patched()
    for steps in (1, 2):
        actor.train_actor(0, runs=runs)
        assert actor.debugger.service.current_step == steps


def test_async_functions_are_awaited_inside_the_step(dump_path: Path) -> None:
    actor = patched()

    async def train_actor(self: Any, rollout_id: int, fails_in: Phase | None) -> str:
        await asyncio.sleep(0)
        return PatchedActor.rollout(self, rollout_id, fails_in=fails_in)

    decorated = actor.probe.rollout(train_actor)
    assert inspect.iscoroutinefunction(decorated)
    assert asyncio.run(decorated(actor, 3, fails_in=None)) == "rollout 3"
    with pytest.raises(RuntimeError, match="planned") as caught:
        asyncio.run(decorated(actor, 4, fails_in="old"))
    assert caught.value is actor.error
    assert actor.debugger.service.current_step == 2
    assert read_phase(dump_path, "old", 1).meta["ended_by_exception"] == "RuntimeError"


def test_the_decorated_function_keeps_its_name_and_signature() -> None:
    decorated = patched().train_actor
    assert decorated.__name__ == "rollout"
    assert list(inspect.signature(decorated).parameters) == ["rollout_id", "runs", "fails_in"]


@pytest.mark.parametrize(
    ("settings", "runs", "reasons"),
    [
        ({}, PHASES, []),
        ({}, ("ref", "actor"), ["phase old was asked for but did not run: slime 0.3 and later take the log-probs"]),
        ({"use_rollout_logprobs": True}, ("ref", "actor"), ["did not run: --use-rollout-logprobs takes the log-probs"]),
        (
            {"use_rollout_logprobs": True, "get_mismatch_metrics": True},
            ("ref", "actor"),
            ["slime 0.3 and later take the log-probs"],
        ),
        ({}, ("old", "actor"), ["phase ref was asked for but did not run: there is no reference model"]),
        (
            {"compute_advantages_and_returns": False},
            ("actor",),
            ["phase ref was asked for but did not run: compute_advantages_and_returns is off", "phase old was asked"],
        ),
        ({}, ("ref", "old"), ["phase actor was asked for but did not run: the rollout returned"]),
        ({"debug_rollout_only": True}, (), []),
    ],
)
def test_a_phase_that_did_not_run_is_said_once_with_the_reason(
    caplog: pytest.LogCaptureFixture, settings: dict[str, bool], runs: tuple[Phase, ...], reasons: list[str]
) -> None:
    actor = patched(args=slime_args(**settings))
    for rollout_id in (0, 1):
        actor.train_actor(rollout_id, runs=runs)
    said = [text for text in caplog.messages if "did not run" in text]
    assert len(said) == len(reasons)
    assert all(reason in text for reason, text in zip(reasons, said, strict=True))


def test_only_phases_that_were_asked_for_are_missed(caplog: pytest.LogCaptureFixture) -> None:
    patched(phases=("actor",)).train_actor(0, runs=("actor",))
    assert caplog.messages == []


def test_a_rollout_that_raised_or_was_not_selected_misses_nothing(
    dump_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    actor = patched()
    with pytest.raises(RuntimeError):
        actor.train_actor(0, fails_in="ref")
    actor.debugger.config._steps = frozenset({9})
    actor.train_actor(1, runs=())
    assert caplog.messages == []
    assert not (dump_path / PHASE_FOLDERS["ref"] / "step1").exists()


def test_the_critic_has_no_debugger_and_is_left_alone(dump_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    critic = patched(role="critic")
    assert critic.debugger is None
    assert critic.train_actor(0) == "rollout 0"
    assert not dump_path.exists()
    assert caplog.messages == []


def test_an_actor_whose_init_was_replaced_runs_and_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    actor = patched()
    del actor.debugger
    for rollout_id in (0, 1):
        assert actor.train_actor(rollout_id) == f"rollout {rollout_id}"
    assert caplog.messages == ["probe-patch: Actor replaces init, so nothing is recorded; call super().init in it"]


def test_a_debugger_of_someone_elses_is_left_alone(dump_path: Path) -> None:
    actor = patched()
    actor.debugger = object()
    assert actor.train_actor(0) == "rollout 0"
    assert not dump_path.exists()


def test_two_actors_of_one_module_do_not_share_steps(dump_path: Path) -> None:
    first = patched()
    second = type(first)()
    second.init("actor", slime_args())
    first.train_actor(0)
    second.train_actor(0, runs=("ref",))
    assert (first.debugger.service.current_step, second.debugger.service.current_step) == (1, 1)


def test_a_bad_config_stops_the_actor_before_training(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PROBE_PATCH_TRAIN_CONFIG", str(tmp_path / "absent.json"))
    with pytest.raises(ConfigError, match=r"absent\.json does not exist"):
        patched()


def test_a_dump_path_that_cannot_be_written_stops_the_actor_before_training(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = tmp_path / "config.json"
    config.write_text('{"level": "L0", "dump_path": "/dev/null/x"}', encoding="utf-8")
    with pytest.raises(ConfigError, match="/dev/null is not a directory"):
        patched()


def test_the_baked_config_is_used_when_no_variable_names_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    baked = tmp_path / "config.json"
    monkeypatch.delenv("PROBE_PATCH_TRAIN_CONFIG")
    monkeypatch.chdir(tmp_path)
    assert patched(config=str(baked)).debugger.config.dump_path == str(tmp_path / "dump")
    assert patched().debugger.config.dump_path == str(tmp_path / "probe_patch_dump")


def _without_model(actor: Any) -> None:
    del actor.model


def _with_failing_service(actor: Any) -> None:
    actor.debugger.service._dump = None


@pytest.mark.parametrize("spoil", [_without_model, _with_failing_service])
def test_our_failures_do_not_reach_the_run(caplog: pytest.LogCaptureFixture, spoil: Callable[[Any], None]) -> None:
    actor = patched()

    def train_actor(self: Any, rollout_id: int) -> int:
        for phase in PHASES:
            self.probe.start(self, phase)
            self.probe.stop(self, phase)
        return rollout_id

    spoil(actor)
    assert actor.probe.rollout(train_actor)(actor, 7) == 7
    assert actor.debugger.service.current_step == 1
    assert len([text for text in caplog.messages if "probe-patch: starting: " in text]) == 1


def test_a_stop_left_out_is_made_up_for_and_its_dump_says_so(dump_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    actor = patched()

    def train_actor(self: Any, rollout_id: int) -> None:
        for phase in PHASES:
            self.probe.start(self, phase)
            self.model[0](ones(1))

    actor.probe.rollout(train_actor)(actor, 0)
    dumps = [read_phase(dump_path, phase) for phase in PHASES]
    assert [list(dump.data) for dump in dumps] == [[ENTRY, ROOT_ENTRY]] * 3
    for dump in dumps:
        (problem,) = dump.meta["problems"]
        assert (problem["kind"], problem["message"], problem["count"]) == ("stopping", MISSED, 1)
    assert len([text for text in caplog.messages if MISSED in text]) == 1


def test_a_phase_that_starts_again_before_its_stop_says_so(dump_path: Path) -> None:
    actor = patched()

    def train_actor(self: Any, rollout_id: int) -> None:
        self.probe.start(self, "actor")
        self.probe.start(self, "actor")
        self.model[0](ones(1))
        self.probe.stop(self, "actor")

    actor.probe.rollout(train_actor)(actor, 0)
    (problem,) = read_phase(dump_path, "actor").meta["problems"]
    assert (problem["kind"], problem["message"]) == ("stopping", MISSED)


def test_a_stop_left_out_by_an_exception_that_ends_the_rollout_is_no_problem(dump_path: Path) -> None:
    actor = patched()
    with pytest.raises(RuntimeError):
        actor.train_actor(0, fails_in="actor")
    assert read_phase(dump_path, "actor").meta["problems"] == []


def test_no_hook_and_no_buffer_is_kept_between_phases(monkeypatch: pytest.MonkeyPatch) -> None:
    actor = patched()
    held: list[tuple[bool, int]] = []
    original = Service.stop

    def stop(self: Service, ended_by: BaseException | None) -> None:
        original(self, ended_by)
        hooks = any(module._forward_hooks or module._forward_pre_hooks for module in actor.model[0].modules())
        held.append((hooks, blocks_on_devices()))

    monkeypatch.setattr(Service, "stop", stop)
    actor.train_actor(0)
    assert set(held) == {(False, 0)}


def test_making_a_probe_is_cheap() -> None:
    program = (
        "import sys\n"
        "from probe_patch.runtime.slime import Probe\n"
        "probe = Probe(phases=('ref',), config='/does/not/exist')\n"
        "probe.rollout(lambda self: None)\n"
        "assert probe and probe.debugger('critic') is None\n"
        "sys.exit(bool({'torch', 'pydantic', 'libcst', 'click'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_debugger_also_works_with_a_plain_module(dump_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    actor = patched()
    actor.model = nn.Sequential(Echo())
    actor.debugger = PrecisionDebugger(dump_path=str(dump_path))
    actor.probe.start(actor, "ref")
    actor.model(ones(1))
    actor.probe.stop(actor, "ref")
    assert list(read_phase(dump_path, "ref").data) == ["Module.0.Echo.forward.0", "Module.Sequential.forward.0"]


def test_a_config_that_turns_recording_off_and_on_is_obeyed(
    dump_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for patience in ("WHILE_ON", "WHILE_OFF"):
        monkeypatch.setattr(f"probe_patch.runtime.hot_config.{patience}", 0.0)
    config = tmp_path / "config.json"
    document = {"level": "L0", "dump_path": str(dump_path), "dump_enable": False}
    config.write_text(json.dumps(document))
    actor = patched()
    actor.train_actor(0)
    moved = tmp_path / "moved"
    config.write_text(json.dumps(document | {"dump_enable": True, "dump_path": str(moved)}))
    actor.train_actor(1)
    assert not dump_path.exists()
    assert [read_phase(moved, phase, 1).meta["rollout_id"] for phase in PHASES] == [1, 1, 1]
