"""``probe-patch demo``: what it shows is true, it leaves what it says it leaves, and it can be interrupted."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from probe_patch.cli import main
from probe_patch.demo.fixture import lay_out
from probe_patch.demo.runs import read_result
from probe_patch.demo.story import tree_hash
from probe_patch.dump_format import PHASE_FOLDERS
from tests.end_to_end.jobs import dumps_in, read_phase
from tests.end_to_end.run_jobs import GATE
from tests.processes import heed_interrupts, left_in_the_end

COMMAND = (sys.executable, "-m", "probe_patch", "demo")
ALL_DUMPS = sorted(
    f"{folder}/step{step}/rank{rank}" for folder in PHASE_FOLDERS.values() for step in (0, 1) for rank in (0, 1)
)


@dataclass(frozen=True)
class Told:
    """What a finished demo printed, and where it worked."""

    exit_code: int
    stdout: str
    stderr: str
    scratch: Path


def environment(temporary: Path) -> dict[str, str]:
    return {**{name: value for name, value in os.environ.items() if name not in GATE}, "TMPDIR": str(temporary)}


def play(temporary: Path, *options: str) -> Told:
    # A user's shell may have the dump on; the demo's runs are its own affair.
    env = {**environment(temporary), "DUMP_ON": "1", "COLUMNS": "120"}
    temporary.mkdir()
    done = subprocess.run([*COMMAND, *options], env=env, capture_output=True, text=True, timeout=280, check=False)
    (scratch,) = temporary.glob("probe-patch-demo-*")
    return Told(done.returncode, done.stdout, done.stderr, scratch)


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[Told, Told]]:
    """Two at a time, as a demo mostly waits for Ray. pytest's own folders have names too long for Ray's sockets."""
    with tempfile.TemporaryDirectory(prefix="pp") as folder, ThreadPoolExecutor() as threads:
        default = threads.submit(play, Path(folder, "a"))
        kept = threads.submit(play, Path(folder, "b"), "--era", "E3", "--keep")
        yield default.result(), kept.result()


@pytest.fixture(scope="module")
def default(both: tuple[Told, Told]) -> Told:
    return both[0]


@pytest.fixture(scope="module")
def kept(both: tuple[Told, Told]) -> Told:
    return both[1]


@pytest.fixture(params=["default", "kept"])
def told(request: pytest.FixtureRequest) -> Told:
    finished: Told = request.getfixturevalue(request.param)
    return finished


def table_rows(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in text.splitlines() if line.startswith("│")]


def test_it_ends_well_and_says_what_was_proved(told: Told) -> None:
    assert told.exit_code == 0, told.stderr
    for sentence in ("bit-identical: 4 losses, 4 sets of weights in each", "byte for byte as before", "none changed"):
        assert sentence in told.stderr
    assert len(re.findall("^✓ training, (unpatched|DUMP_ON=0|DUMP_ON=1) ", told.stderr, re.MULTILINE)) == 3
    assert len(set(re.findall(r"weights ([0-9a-f]{12})…", told.stderr))) == 1


def test_the_dumps_are_where_it_says_and_what_it_says(told: Told) -> None:
    (path,) = re.findall("^dumps: (.*)$", told.stdout, re.MULTILINE)
    assert Path(path) == told.scratch / "dump"
    assert dumps_in(Path(path)) == ALL_DUMPS
    shown = [row for row in table_rows(told.stdout) if len(row) == 6]
    assert len(shown) == len(ALL_DUMPS)
    for phase, step, rank, modules, tensors, size in shown:
        dump = read_phase(Path(path), phase, int(step), int(rank))  # type: ignore[arg-type]
        assert int(modules) == len({entry.rpartition(".forward.")[0] for entry in dump.data}) == 42
        assert int(tensors) == dump.meta["tensors"]
        folder = Path(path) / PHASE_FOLDERS[phase] / f"step{step}" / f"rank{rank}"  # type: ignore[index]
        assert int(size.replace(",", "")) == sum(file.stat().st_size for file in folder.iterdir())


def test_the_numbers_it_shows_are_the_dumps(told: Told) -> None:
    entry = "Module.0.decoder.final_layernorm.SequenceParallelRMSNorm.forward.0"
    shown = {row[0]: row[1:] for row in table_rows(told.stdout) if len(row) == 5}
    assert set(shown) == set(PHASE_FOLDERS)
    for phase in PHASE_FOLDERS:
        tensor = read_phase(told.scratch / "dump", phase, 0).data[entry]["output"][0]
        assert shown[phase] == [f"{tensor[key]:.7g}" for key in ("Max", "Min", "Mean", "Norm")]
    assert shown["ref"] != shown["old"] == shown["actor"]


def test_only_the_dumps_stay(default: Told) -> None:
    assert [path.name for path in default.scratch.iterdir()] == ["dump"]


def test_with_keep_the_reverted_tree_and_the_results_stay_too(kept: Told, tmp_path: Path) -> None:
    assert f"tree, results and logs: {kept.scratch}" in kept.stdout
    assert tree_hash(kept.scratch / "slime") == tree_hash(lay_out("E3", tmp_path / "E3"))
    results = {name: read_result(kept.scratch / f"{name}.json") for name in ("unpatched", "off", "on")}
    assert len({repr(result.numbers()) for result in results.values()}) == 1
    assert {name: result.reports()[0].probe_patch_loaded for name, result in results.items()} == {
        "unpatched": False,
        "off": False,
        "on": True,
    }
    assert all((kept.scratch / f"{name}.log").exists() for name in results)


def test_an_unknown_era_is_wrong_usage() -> None:
    result = CliRunner().invoke(main, ["demo", "--era", "E99"])
    assert result.exit_code == 2
    assert "'E99' is not one of 'E3', 'E5'" in result.stderr


class WithoutRay(PathFinder):
    """Finds every module but Ray."""

    @classmethod
    def find_spec(cls, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return None if fullname == "ray" else super().find_spec(fullname, path, target)


def test_without_ray_it_says_what_to_install_and_begins_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finders = [WithoutRay if finder is PathFinder else finder for finder in sys.meta_path]
    monkeypatch.setattr(sys, "meta_path", finders)
    monkeypatch.delitem(sys.modules, "ray", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    result = CliRunner().invoke(main, ["demo"])
    assert result.exit_code == 4
    sentence = "probe-patch: the demo trains for real and needs ray: install probe-patch with its extra [demo]\n"
    assert (result.stdout, result.stderr) == ("", sentence)
    assert list(tmp_path.iterdir()) == []


def processes_below(temporary: Path) -> dict[int, str]:
    """Command lines of all processes that were started with this folder for temporary files, by process id."""
    mark = f"TMPDIR={temporary}".encode()
    processes = [process for process in Path("/proc").glob("[0-9]*") if mark in read(process / "environ").split(b"\0")]
    return {int(process.name): read(process / "cmdline").replace(b"\0", b" ").decode() for process in processes}


def read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:  # the process has ended, or is someone else's
        return b""


def test_interrupted_while_training_it_leaves_neither_processes_nor_files() -> None:
    with tempfile.TemporaryDirectory(prefix="pp") as folder:
        temporary = Path(folder)
        demo = subprocess.Popen(
            COMMAND,
            env=environment(temporary),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=heed_interrupts,
        )
        try:
            while not any("MegatronTrainRayActor" in command for command in processes_below(temporary).values()):
                assert demo.poll() is None, "the demo ended before it trained"
                time.sleep(0.05)
            # A terminal interrupts everything in its foreground group.
            os.killpg(demo.pid, signal.SIGINT)
            stdout, stderr = demo.communicate(timeout=60)
            left = left_in_the_end(lambda: processes_below(temporary))
        finally:
            for pid in processes_below(temporary):
                os.kill(pid, signal.SIGKILL)
        assert demo.returncode == 130
        assert left == {}
        assert "probe-patch: interrupted" in stderr
        assert "✓ training" not in stderr
        assert "Traceback" not in stderr
        assert stdout == ""
        assert [path.name for path in temporary.iterdir() if not path.name.startswith("torchinductor")] == []
