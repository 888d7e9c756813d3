"""The forwards of an inference engine that msProbe is started for."""

import json
import sys
from pathlib import Path

import pytest

from probe_patch.errors import SystemFailed
from probe_patch.runtime.sglang import Probe
from tests.runtime.msprobe_debugger.conftest import Configure
from tests.runtime.msprobe_debugger.stand_in import StandInDebugger
from tests.runtime.sglang.stand_in import PlainRunner, ServerArgs, decode, extend


class Engine:
    """Makes patched runners of one process."""

    def __init__(self) -> None:
        probe = Probe(None, "msprobe")
        members = {"__init__": probe.init(PlainRunner.__init__), "forward": probe.forward(PlainRunner.forward)}
        self.runner: type[PlainRunner] = type("Runner", (PlainRunner,), members)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, msprobe: type[StandInDebugger], configure: Configure) -> Engine:
    monkeypatch.setenv("PROBE_PATCH_ROLLOUT_CONFIG", str(configure()))
    return Engine()


def test_probes_and_idle_forwards_are_not_recorded(engine: Engine, msprobe: type[StandInDebugger]) -> None:
    runner = engine.runner()
    msprobe.calls.clear()
    for batch in (extend(1), extend(3), extend(0, "IDLE"), decode(), extend(4)):
        runner.forward(batch)
    recorded = [[("number", n), ("start", "rollout", 0), ("stop",), ("step",)] for n in range(2)]
    assert msprobe.calls == [call for calls in recorded for call in calls]


def test_the_steps_of_the_config_are_forwards_that_count(
    engine: Engine, msprobe: type[StandInDebugger], configure: Configure
) -> None:
    configure(step=[1], rollout={"modes": ["decode"], "max_forwards": 5})
    runner = engine.runner()
    msprobe.calls.clear()
    for batch in (extend(3), decode(), decode(2), decode(3)):
        runner.forward(batch)
    assert msprobe.calls == [("number", 1), ("start", "rollout", 0), ("stop",), ("step",)]


def test_a_forward_that_raises_is_stopped(engine: Engine, msprobe: type[StandInDebugger]) -> None:
    runner = engine.runner()
    msprobe.calls.clear()
    runner.model = None  # type: ignore[assignment]
    with pytest.raises(AttributeError):
        runner.forward(extend(3))
    assert msprobe.calls == [("number", 0), ("start", "rollout", 0), ("stop",), ("step",)]


def test_each_replica_has_a_rank_of_its_own(engine: Engine, msprobe: type[StandInDebugger], tmp_path: Path) -> None:
    runner = engine.runner(tp_rank=1, server_args=ServerArgs(tp_size=2))
    runner.forward(extend(3))
    assert ("start", "rollout", 1) in msprobe.calls


def test_a_draft_model_in_the_same_process_is_not_mixed_in(
    engine: Engine, msprobe: type[StandInDebugger], configure: Configure, caplog: pytest.LogCaptureFixture
) -> None:
    configure(rollout={"draft": True})
    target, draft = engine.runner(), engine.runner(is_draft_worker=True)
    for runner in (target, draft):
        runner.forward(extend(3))
    assert [call for call in msprobe.calls if call[0] == "start"] == [("start", "rollout", 0)]
    assert "msProbe has one debugger in a process" in caplog.messages[-1]


def test_where_sglangs_own_hook_is_on_we_stay_out(
    engine: Engine, msprobe: type[StandInDebugger], caplog: pytest.LogCaptureFixture
) -> None:
    class Hooked(PlainRunner):
        def __init__(self) -> None:
            super().__init__()
            self.msprobe_debugger = object()

    probe = Probe(None, "msprobe")
    members = {"__init__": probe.init(Hooked.__init__), "forward": probe.forward(Hooked.forward)}
    type("Runner", (Hooked,), members)().forward(extend(3))
    assert [call for call in msprobe.calls if call[0] == "start"] == []
    assert "msProbe records this server and probe-patch does not" in caplog.messages[-1]


def test_without_msprobe_no_model_is_loaded(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, msprobe: type[StandInDebugger]
) -> None:
    loaded: list[object] = []
    monkeypatch.setattr(PlainRunner, "__init__", lambda self: loaded.append(self))
    monkeypatch.setitem(sys.modules, "msprobe.pytorch", None)
    with pytest.raises(SystemFailed, match="pip install -U mindstudio-probe"):
        Engine().runner()
    assert loaded == []


def test_the_config_of_the_environment_is_the_one_that_counts(msprobe: type[StandInDebugger], engine: Engine) -> None:
    engine.runner()
    assert json.loads(msprobe.config_text)["dump_path"].endswith("/dump")
