"""config.json with ``dump_enable`` is read again while the process runs: a switch that needs no restart."""

import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from torch import nn

from probe_patch.runtime.debugger import PrecisionDebugger
from probe_patch.runtime.service import Service
from tests.runtime.dumps import read_dump
from tests.runtime.toys import Around, Echo


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


class Run:
    """A program that starts, runs a module, stops and steps, while somebody edits its config.json."""

    def __init__(self, folder: Path, **keys: Any) -> None:
        self.folder = folder
        self.file = folder / "config.json"
        self.clock = Clock()
        self.model = Around(Echo())
        self._writes = 0
        self.write(**keys)
        self.debugger = PrecisionDebugger(self.file)
        self.debugger.service = Service(self.debugger.config, self.clock)

    def write(self, text: str | None = None, **keys: Any) -> None:
        """A new version of the file, of another size than the one before."""
        self._writes += 1
        document = json.dumps({"level": "L0", "dump_path": str(self.folder / "dump")} | keys)
        self.file.write_text((document if text is None else text) + " " * self._writes)

    def step(self, seconds: float = 10.0) -> None:
        self.clock.now += seconds
        self.debugger.start(self.model)
        self.model()
        self.debugger.stop()
        self.debugger.step()

    def recorded(self, dump_path: str = "dump") -> list[int]:
        return sorted(int(path.name.removeprefix("step")) for path in (self.folder / dump_path).glob("step*"))


@pytest.fixture(autouse=True)
def ranked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "0")


def test_off_and_on_again(tmp_path: Path) -> None:
    run = Run(tmp_path, dump_enable=False)
    run.step()
    run.write(dump_enable=True)
    run.step()
    run.write(dump_enable=False)
    run.step()
    assert run.recorded() == [1]


@pytest.mark.parametrize(("is_on", "patience"), [(True, 0.5), (False, 3.0)])
def test_the_file_is_looked_at_only_every_so_often(tmp_path: Path, is_on: bool, patience: float) -> None:
    run = Run(tmp_path, dump_enable=is_on)
    run.write(dump_enable=not is_on)
    run.step(patience - 0.01)
    assert run.recorded() == ([0] if is_on else [])
    run.step(0.02)
    assert run.recorded() == ([0] if is_on else [1])


def test_without_the_key_the_file_is_never_read_again(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.write(dump_enable=False)
    run.step()
    assert run.recorded() == [0]


def test_a_config_that_went_bad_is_said_once_and_nothing_is_recorded_until_it_is_mended(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = Run(tmp_path, dump_enable=True)
    run.step()
    run.write(text='{"level": ')
    run.step()
    run.step()
    run.write(dump_enable=True)
    run.step()
    assert run.recorded() == [0, 3]
    assert [text for text in caplog.messages if "not JSON" in text] == [
        f"probe-patch: {run.file}:1:13: not JSON: Expecting value; nothing is recorded until it is mended"
    ]


def test_a_key_that_is_taken_out_leaves_recording_as_it_was(tmp_path: Path) -> None:
    run = Run(tmp_path, dump_enable=False)
    run.write()
    run.step()
    run.write(dump_enable=True)
    run.step()
    run.write()
    run.step()
    assert run.recorded() == [1, 2]


def test_a_file_that_is_gone_changes_nothing(tmp_path: Path) -> None:
    run = Run(tmp_path, dump_enable=True)
    run.file.unlink()
    run.step()
    assert run.recorded() == [0]


def test_every_setting_counts_from_the_next_dump(tmp_path: Path) -> None:
    run = Run(tmp_path, dump_enable=True)
    run.step()
    run.write(dump_enable=True, dump_path=str(tmp_path / "other"), task="structure", step=[2])
    run.step()
    run.step()
    assert (run.recorded(), run.recorded("other")) == ([0], [2])
    assert read_dump(tmp_path / "other/step2/rank0").dump["task"] == "structure"


def test_a_dump_that_has_begun_keeps_its_settings_to_its_end(tmp_path: Path) -> None:
    run = Run(tmp_path, dump_enable=True)
    debugger = run.debugger
    for task in ("statistics", "structure"):
        run.write(dump_enable=True, task=task)
        run.clock.now += 1
        debugger.start(run.model)
        run.model()
        debugger.stop()
    dump = read_dump(tmp_path / "dump/step0/rank0")
    assert (dump.dump["task"], dump.meta["entries"]) == ("statistics", 4)


def test_what_runs_when_it_is_turned_off_ends_and_is_written(tmp_path: Path) -> None:
    run = Run(tmp_path, dump_enable=True)
    run.debugger.start(run.model)
    run.model()
    run.write(dump_enable=False)
    run.clock.now += 1
    run.debugger.start(run.model)
    assert not run.model.inner._forward_hooks
    assert read_dump(tmp_path / "dump/step0/rank0").meta["entries"] == 2


def test_a_dump_path_that_a_caller_has_assigned_stays(tmp_path: Path) -> None:
    run = Run(tmp_path, dump_enable=True)
    run.debugger.config.dump_path = tmp_path / "mine"
    run.write(dump_enable=True, task="structure")
    run.step()
    assert (run.recorded(), run.recorded("mine")) == ([], [0])


def test_constructor_arguments_replace_the_file_again(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"level": "L0", "dump_path": "/nowhere", "dump_enable": True}))
    debugger = PrecisionDebugger(path, dump_path=str(tmp_path / "dump"))
    clock = Clock()
    debugger.service = Service(debugger.config, clock)
    path.write_text(json.dumps({"level": "L0", "dump_path": "/nowhere", "dump_enable": True, "step": [1]}))
    clock.now = 1
    debugger.step()
    assert debugger.config.folder() == tmp_path / "dump"
    assert not debugger.config.selects(0, 0)


def test_what_was_read_again_is_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    run = Run(tmp_path, dump_enable=True)
    run.write(dump_enable=False)
    run.step()
    assert f"probe-patch: {run.file} was read again: recording is off" in caplog.messages


def test_nothing_of_this_reaches_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("broken on purpose")

    run = Run(tmp_path, dump_enable=True)
    monkeypatch.setattr("probe_patch.runtime.hot_config.HotConfig.look", broken)
    run.step()
    assert isinstance(run.model, nn.Module)
    assert run.recorded() == [0]
