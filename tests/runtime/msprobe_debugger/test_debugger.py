"""The config.json that msProbe gets, and what we read of it."""

import json
import tempfile
from pathlib import Path

import pytest

from probe_patch.config import default_text
from probe_patch.errors import ConfigError
from probe_patch.runtime.msprobe.debugger import MsprobeDebugger
from tests.runtime.msprobe_debugger.conftest import Configure
from tests.runtime.msprobe_debugger.stand_in import StandInDebugger


def test_msprobe_gets_the_config_as_it_is(msprobe: type[StandInDebugger], configure: Configure) -> None:
    path = configure(level="L2", task="tensor", what="ever", rollout={"modes": ["all"]})
    debugger = MsprobeDebugger(path)
    assert msprobe.calls == [("config", str(path))]
    assert (debugger.config.level, debugger.config.rollout.modes) == ("L2", ["all"])
    assert debugger.config.folder() == path.parent / "dump"


def test_a_relative_config_is_named_in_full(
    monkeypatch: pytest.MonkeyPatch, msprobe: type[StandInDebugger], configure: Configure
) -> None:
    path = configure()
    monkeypatch.chdir(path.parent)
    MsprobeDebugger(Path(path.name))
    assert msprobe.calls == [("config", str(path))]


def test_without_a_config_one_stands_in_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, msprobe: type[StandInDebugger], caplog: pytest.LogCaptureFixture
) -> None:
    working, temporary = tmp_path / "working", tmp_path / "temporary"
    for folder in (working, temporary):
        folder.mkdir()
    monkeypatch.chdir(working)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    debugger = MsprobeDebugger(None)
    ((_, read),) = msprobe.calls
    assert Path(str(read)).suffix == ".json"
    assert Path(str(read)).is_relative_to(temporary)
    assert msprobe.config_text == default_text(str(working / "probe_patch_dump"))
    assert json.loads(msprobe.config_text)["step"] == [0]
    assert debugger.config.folder() == working / "probe_patch_dump"
    assert caplog.messages[0] == (
        f"probe-patch: no config.json: step 0 is recorded, into {working / 'probe_patch_dump'}"
    )
    assert [list(folder.iterdir()) for folder in (working, temporary)] == [[], []]


def test_a_debugger_that_the_run_made_before_keeps_its_settings_and_that_is_said(
    tmp_path: Path, msprobe: type[StandInDebugger], configure: Configure, caplog: pytest.LogCaptureFixture
) -> None:
    other = tmp_path / "other.json"
    other.write_text('{"dump_path": "/theirs"}')
    msprobe(str(other))
    MsprobeDebugger(configure())
    assert "has had a debugger in this process before, made for /theirs: its settings hold" in caplog.messages[0]
    caplog.clear()
    MsprobeDebugger(other)
    assert not any("before" in message for message in caplog.messages)


BAD = [
    ('{"dump_path": "/dev/null/x"}', "/dev/null is not a directory"),
    ("{}", "dump_path is missing"),
    ("[]", "must hold a JSON object"),
    ('{"dump_path": "/d", "rank": 0}', "rank must be a list such as"),
    (None, "does not exist"),
]


@pytest.mark.parametrize(("text", "reason"), BAD)
def test_a_bad_config_stops_the_process_before_msprobe_is_made(
    tmp_path: Path, msprobe: type[StandInDebugger], text: str | None, reason: str
) -> None:
    path = tmp_path / "c.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError, match=reason):
        MsprobeDebugger(path)
    assert msprobe.calls == []
