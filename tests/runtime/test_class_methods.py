"""Methods of the debugger called on the class, as msProbe's are, mean the only debugger of the process."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from torch import nn

from probe_patch.runtime import made
from probe_patch.runtime.debugger import PrecisionDebugger
from tests.runtime.conftest import AskedFor
from tests.runtime.dumps import read_dump
from tests.runtime.toys import Around, Echo


@pytest.fixture(autouse=True)
def a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No debuggers of earlier tests."""
    monkeypatch.setattr(made.MADE, "__dict__", made.Made().__dict__)
    yield
    gc.collect()


def test_the_only_debugger_is_meant_and_need_not_be_held(asked_for: AskedFor, tmp_path: Path) -> None:
    model = Around(Echo())
    asked_for()
    gc.collect()
    PrecisionDebugger.start(model)
    model()
    PrecisionDebugger.stop()
    PrecisionDebugger.step()
    with PrecisionDebugger.phase("ref", model):
        model()
    PrecisionDebugger.stop()
    assert len(read_dump(tmp_path / "dump/step0/rank0").data) == 2
    assert len(read_dump(tmp_path / "dump/ref/step1/rank0").data) == 2


def test_save_is_called_where_no_debugger_is_at_hand(asked_for: AskedFor, tmp_path: Path) -> None:
    asked_for(level="debug")
    PrecisionDebugger.save(3, "x")
    PrecisionDebugger.step()
    assert '"x.0.debug"' in (tmp_path / "dump/step0/rank0/debug.json").read_text()


def test_without_a_debugger_it_is_said_once_and_nothing_happens(caplog: pytest.LogCaptureFixture) -> None:
    model = Around(Echo())
    for _ in range(2):
        PrecisionDebugger.start(model)
    with PrecisionDebugger.phase("ref", model):
        model()
    assert caplog.messages == [
        f"probe-patch: PrecisionDebugger.{method}() was called on the class, and this process has no debugger; "
        "make one first"
        for method in ("start", "phase")
    ]


def test_of_two_debuggers_none_is_meant(asked_for: AskedFor, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    both = [asked_for(), asked_for()]
    PrecisionDebugger.start(nn.Sequential(nn.Identity()))
    assert "this process has 2 debuggers; call it on the one you mean" in caplog.text
    assert not (tmp_path / "dump").exists()
    del both[0]
    gc.collect()
    PrecisionDebugger.start(nn.Sequential(nn.Identity()))
    assert (tmp_path / "dump").exists()


class Mine(PrecisionDebugger):
    """A subclass that does something before."""

    started = 0

    def start(self, *args: object, **kwargs: object) -> None:
        self.started += 1
        super().start(*args, **kwargs)  # type: ignore[arg-type]

    def stop(self) -> None:
        PrecisionDebugger.stop(self)  # type: ignore[call-arg]


def test_a_subclass_may_call_what_it_replaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "0")
    model, debugger = Around(Echo()), Mine(dump_path=str(tmp_path / "dump"))
    debugger.start(model)
    model()
    debugger.stop()
    assert debugger.started == 1
    assert len(read_dump(tmp_path / "dump/step0/rank0").data) == 2


def test_methods_keep_their_names_and_texts() -> None:
    for name in ("start", "stop", "step", "save", "phase", "set_init_step"):
        method = getattr(PrecisionDebugger, name)
        assert method.__name__ == name
        assert method.__doc__
