"""Starts, stops, steps, ranks and folders."""

import json
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from torch import Tensor, nn

from probe_patch.errors import ConfigError
from probe_patch.runtime import PrecisionDebugger
from tests.runtime.dumps import only_rank, read_dump
from tests.runtime.memory import blocks_on_devices
from tests.runtime.toys import Around, Echo, Mlp, ones


def config_file(folder: Path, **keys: object) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps({"level": "L0", "dump_path": str(folder / "dump")} | keys), encoding="utf-8")
    return path


def run_once(debugger: PrecisionDebugger, model: nn.Module) -> None:
    debugger.start(model)
    model()
    debugger.stop()


def written_steps(dump_path: Path) -> list[str]:
    return sorted(path.name for path in dump_path.glob("step*"))


@pytest.fixture(autouse=True)
def ranked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "0")


@pytest.fixture
def model() -> nn.Module:
    return Around(Echo())


@pytest.mark.parametrize(
    ("step", "expected"),
    [([], ["step0", "step1", "step2"]), ([1], ["step1"]), (["0-1"], ["step0", "step1"]), ([7], [])],
)
def test_only_chosen_steps_leave_anything(
    tmp_path: Path, model: nn.Module, step: list[object], expected: list[str]
) -> None:
    debugger = PrecisionDebugger(config_file(tmp_path, step=step))
    for _ in range(3):
        run_once(debugger, model)
        debugger.step()
    assert written_steps(tmp_path / "dump") == expected


@pytest.mark.parametrize(
    ("ranks", "rank", "is_written"),
    [([], "3", True), ([3], "3", True), ([0], "3", False), ([0], None, True), ([1], None, False)],
)
def test_only_chosen_ranks_leave_anything(
    tmp_path: Path,
    model: nn.Module,
    monkeypatch: pytest.MonkeyPatch,
    ranks: list[int],
    rank: str | None,
    is_written: bool,
) -> None:
    if rank is None:
        monkeypatch.delenv("RANK")
    else:
        monkeypatch.setenv("RANK", rank)
    run_once(PrecisionDebugger(config_file(tmp_path, rank=ranks)), model)
    assert (tmp_path / "dump").exists() == is_written


@pytest.mark.parametrize(
    ("variable", "rank_id", "folder"),
    [("5", None, "rank5"), ("5", 2, "rank2"), (None, None, "proc{pid}"), ("many", None, "proc{pid}")],
)
def test_the_folder_is_the_rank_or_the_process(
    tmp_path: Path,
    model: nn.Module,
    monkeypatch: pytest.MonkeyPatch,
    variable: str | None,
    rank_id: int | None,
    folder: str,
) -> None:
    if variable is None:
        monkeypatch.delenv("RANK")
    else:
        monkeypatch.setenv("RANK", variable)
    debugger = PrecisionDebugger(config_file(tmp_path))
    debugger.start(model, rank_id=rank_id)
    debugger.stop()
    assert only_rank(tmp_path / "dump" / "step0").name == folder.format(pid=os.getpid())


def test_stop_and_step_without_start_do_nothing(tmp_path: Path) -> None:
    debugger = PrecisionDebugger(config_file(tmp_path))
    debugger.stop()
    debugger.step()
    assert debugger.service.current_step == 1
    assert not (tmp_path / "dump").exists()


def test_a_second_start_changes_nothing(tmp_path: Path, model: nn.Module) -> None:
    debugger = PrecisionDebugger(config_file(tmp_path))
    debugger.start(model)
    model()
    debugger.start(model)
    assert not (tmp_path / "dump/step0/rank0/dump.json").exists()
    model()
    debugger.stop()
    assert len(read_dump(tmp_path / "dump/step0/rank0").data) == 2 * 2


def test_two_starts_in_one_step_go_on_counting(tmp_path: Path, model: nn.Module) -> None:
    debugger = PrecisionDebugger(config_file(tmp_path))
    run_once(debugger, model)
    run_once(debugger, model)
    dump = read_dump(tmp_path / "dump/step0/rank0")
    echo, root = "Module.inner.Echo.forward", "Module.Around.forward"
    assert list(dump.data) == [f"{echo}.0", f"{root}.0", f"{echo}.1", f"{root}.1"]
    assert dump.construct == {f"{root}.{k}": None for k in (0, 1)} | {f"{echo}.{k}": f"{root}.{k}" for k in (0, 1)}
    assert dump.meta["entries"] == 2 * 2


@pytest.mark.parametrize("where", ["config", "service"])
def test_another_dump_path_is_another_dump_that_counts_from_0(tmp_path: Path, model: nn.Module, where: str) -> None:
    debugger = PrecisionDebugger(config_file(tmp_path))
    settings = debugger.config if where == "config" else debugger.service.config
    for name, times in (("ref", 2), ("old", 1), ("ref", 1)):
        settings.dump_path = str(tmp_path / name)
        for _ in range(times):
            run_once(debugger, model)
    assert len(read_dump(tmp_path / "ref/step0/rank0").data) == 2 * 3
    assert list(read_dump(tmp_path / "old/step0/rank0").data) == [
        "Module.inner.Echo.forward.0",
        "Module.Around.forward.0",
    ]


def test_a_dump_path_assigned_while_recording_counts_from_the_next_start(tmp_path: Path, model: nn.Module) -> None:
    debugger = PrecisionDebugger(config_file(tmp_path))
    debugger.start(model)
    debugger.config.dump_path = tmp_path / "later"
    model()
    debugger.stop()
    assert len(read_dump(tmp_path / "dump/step0/rank0").data) == 2
    assert not (tmp_path / "later").exists()


def test_counters_begin_again_with_each_step(tmp_path: Path, model: nn.Module) -> None:
    debugger = PrecisionDebugger(config_file(tmp_path))
    for _ in range(2):
        run_once(debugger, model)
        debugger.step()
    found = list(read_dump(tmp_path / "dump/step1/rank0").data)
    assert found == ["Module.inner.Echo.forward.0", "Module.Around.forward.0"]


def test_without_extra_info_only_the_dump_and_its_meta_are_written(tmp_path: Path, model: nn.Module) -> None:
    run_once(PrecisionDebugger(config_file(tmp_path, extra_info=False)), model)
    names = sorted(path.name for path in (tmp_path / "dump/step0/rank0").iterdir())
    assert names == ["dump.json", "meta.json"]


def test_without_a_config_step_0_goes_to_the_working_directory(
    tmp_path: Path, model: nn.Module, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    debugger = PrecisionDebugger()
    for _ in range(2):
        run_once(debugger, model)
        debugger.step()
    assert written_steps(tmp_path / "probe_patch_dump") == ["step0"]
    assert caplog.messages == [f"probe-patch: no config.json: step 0 is recorded, into {tmp_path}/probe_patch_dump"]


def test_a_bad_config_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match='level is "L2"'):
        PrecisionDebugger(config_file(tmp_path, level="L2"))


def test_warnings_of_the_config_are_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    PrecisionDebugger(config_file(tmp_path, dump_pth="x"))
    assert "unknown key dump_pth (did you mean dump_path?)" in caplog.text


def test_a_start_without_a_model_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    debugger = PrecisionDebugger(config_file(tmp_path))
    debugger.start()
    debugger.start()
    debugger.stop()
    assert len([text for text in caplog.messages if "start() was given no model" in text]) == 1
    assert not (tmp_path / "dump").exists()


def test_an_earlier_runs_dump_is_moved_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = config_file(tmp_path)
    folder = tmp_path / "dump/step0/rank0"
    model = Mlp()
    caplog.set_level(logging.WARNING)
    for rows in (1, 2, 3):
        debugger = PrecisionDebugger(path)
        debugger.start(model)
        assert list(folder.iterdir()) == []
        model(ones(rows, 4))
        debugger.stop()
        (folder / ".dump.json.99").touch()
    kept = [tmp_path / "dump.replaced" / f"step0-rank0-{number}" for number in (1, 2)]
    norms = [
        read_dump(where).data["Module.norm.LayerNorm.forward.0"]["output"][0]["shape"] for where in (*kept, folder)
    ]
    assert norms == [[1, 4], [2, 4], [3, 4]]
    assert [text for text in caplog.messages if "earlier run" in text] == [
        f"probe-patch: {folder} held the dump of an earlier run, which is now {where}" for where in kept
    ]


def test_an_earlier_runs_dump_that_cannot_be_moved_is_emptied(
    tmp_path: Path, model: nn.Module, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = config_file(tmp_path)
    folder = tmp_path / "dump/step0/rank0"
    run_once(PrecisionDebugger(path), model)
    (folder / "dump_tensor_data").mkdir()
    (folder / "dump_tensor_data" / "old.pt").touch()
    (folder / "notes.txt").touch()

    def refused(*_: object) -> None:
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(Path, "rename", refused)
    # Let go of, it would write what it has.
    debugger = PrecisionDebugger(path)
    debugger.start(model)
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]
    debugger.stop()
    assert f"{folder} holds the dump of an earlier run, which is replaced: moving it failed" in caplog.text


def _file_in_the_way(folder: Path) -> Path:
    (folder / "file").touch()
    return folder / "file" / "dump" / "deep"


def _plain_file(folder: Path) -> Path:
    (folder / "file").touch()
    return folder / "file"


def _dangling_link(folder: Path) -> Path:
    (folder / "link").symlink_to(folder / "nowhere")
    return folder / "link" / "dump"


@pytest.mark.parametrize("place", [_file_in_the_way, _plain_file, _dangling_link, lambda _: Path("/dev/null/x")])
def test_a_dump_path_with_something_in_its_way_is_refused_at_once(
    tmp_path: Path, place: Callable[[Path], Path]
) -> None:
    dump_path = place(tmp_path)
    with pytest.raises(
        ConfigError, match=r"^dump_path .* cannot be made: .* is not a directory; choose another place$"
    ):
        PrecisionDebugger(config_file(tmp_path, dump_path=str(dump_path)))


def test_a_dump_path_below_a_folder_without_permission_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: not (path == tmp_path and mode == os.W_OK | os.X_OK))
    with pytest.raises(ConfigError, match=rf"this process may not write into {tmp_path}; choose another place$"):
        PrecisionDebugger(config_file(tmp_path, dump_path=str(tmp_path / "a" / "b")))


def test_making_a_debugger_makes_no_folder(tmp_path: Path) -> None:
    PrecisionDebugger(config_file(tmp_path, dump_path=str(tmp_path / "a" / "b")))
    assert not (tmp_path / "a").exists()


def test_a_recording_in_which_nothing_ran_says_so(
    tmp_path: Path, model: nn.Module, caplog: pytest.LogCaptureFixture
) -> None:
    debugger = PrecisionDebugger(config_file(tmp_path))
    debugger.start(model)
    debugger.stop()
    (problem,) = read_dump(tmp_path / "dump/step0/rank0").meta["problems"]
    assert (problem["kind"], problem["message"].split(";")[0]) == ("recording", "no module's forward ran")
    assert len([text for text in caplog.messages if "a compiled model or a graph replay" in text]) == 1
    debugger.step()
    run_once(debugger, model)
    assert read_dump(tmp_path / "dump/step1/rank0").meta["problems"] == []


def test_nothing_of_a_dump_stays_in_memory_after_its_step(tmp_path: Path, model: nn.Module) -> None:
    debugger = PrecisionDebugger(config_file(tmp_path))
    run_once(debugger, model)
    assert blocks_on_devices() == 0
    debugger.step()
    assert debugger.service._dumps == {}


def twice(x: Tensor) -> Tensor:
    return x + x


def test_a_function_is_recorded_from_the_start_after_it_was_registered_until_it_is_restored(tmp_path: Path) -> None:
    debugger, here = PrecisionDebugger(config_file(tmp_path, level="L1")), sys.modules[__name__]

    def recorded() -> bool:
        debugger.start()
        twice(ones(1))
        debugger.stop()
        (folder,) = (tmp_path / f"dump/step{debugger.service.current_step}").iterdir()
        debugger.step()
        return "mine.twice.0.forward" in read_dump(folder).data

    debugger.register_custom_api(here, "twice", "mine")
    assert recorded()
    debugger.restore_custom_api(here, "twice")
    assert not recorded()
