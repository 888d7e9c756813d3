"""Several runs at once, and runs that are interrupted: the file is one whole valid state, and nothing is left over."""

import contextlib
import fcntl
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from probe_patch.dump_format import Phase
from probe_patch.patcher.request import ALL_PHASES, Request
from probe_patch.patcher.rewrite import apply
from tests.cli.trees import ORIGINAL, checkout, contents
from tests.processes import heed_interrupts

SUBSETS: list[tuple[Phase, ...]] = [subset for size in (1, 2, 3) for subset in itertools.combinations(ALL_PHASES, size)]
PATCHED = {",".join(phases): apply(ORIGINAL, Request(phases), "actor.py").source for phases in SUBSETS}


def start(*arguments: str | Path, before: str = "") -> subprocess.Popen[str]:
    """A command in a process of its own, after the lines in ``before``."""
    script = f"{before}\nfrom probe_patch.entry import main; main()\n"
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    )


@contextlib.contextmanager
def finished(*processes: subprocess.Popen[str]) -> Iterator[list[tuple[int, str, str]]]:
    """Exit codes, stdout and stderr of ``processes``; none outlives this."""
    try:
        answers = [process.communicate(timeout=60) for process in processes]
        yield [(process.returncode, out, err) for process, (out, err) in zip(processes, answers, strict=True)]
    finally:
        for process in processes:
            process.kill()
            process.wait()


CROWDS = [
    (("apply", "ref"), ("apply", "actor")),
    (("apply", "ref"), ("revert", "")),
    (("apply", "ref"), ("apply", "old"), ("apply", "actor"), ("apply", "ref,actor"), ("revert", "")),
]


@pytest.mark.parametrize("crowd", CROWDS, ids=lambda crowd: " and ".join(" ".join(command) for command in crowd))
def test_runs_at_once_take_turns(tmp_path: Path, crowd: tuple[tuple[str, str], ...]) -> None:
    """All wait behind a lock that the test holds, so that they start working at the same moment."""
    actors = [checkout(tmp_path, PATCHED["ref,old"], package) for package in ("slime", "miles")]
    files = set(contents(tmp_path))
    with held(actors[0].parent):
        processes = [
            start(verb, tmp_path, *(["--phases", phases] if phases else []), before=SAY_WAITING)
            for verb, phases in crowd
        ]
        for process in processes:
            assert read_line(process) == "waiting"
    with finished(*processes) as answers:
        for code, out, err in answers:
            assert code == 0, err
            assert len([line for line in out.splitlines() if line != "waiting"]) == 2
    possible = {PATCHED[phases] if phases else ORIGINAL for _, phases in crowd}
    assert actors[0].read_bytes() == actors[1].read_bytes()
    assert actors[0].read_bytes() in possible
    assert set(contents(tmp_path)) == files, "a temporary file was left"


def test_runs_at_once_that_nothing_holds_back(tmp_path: Path) -> None:
    actor = checkout(tmp_path)
    files = set(contents(tmp_path))
    with finished(*(start("apply", tmp_path, "--phases", phases) for phases in list(PATCHED)[:5])) as answers:
        assert [code for code, _, _ in answers] == [0] * 5
    assert actor.read_bytes() in list(PATCHED.values())[:5]
    assert set(contents(tmp_path)) == files


# Says so, once, where a run finds the lock taken and would sleep.
SAY_WAITING = """
from probe_patch.patcher import folder_lock
class Time:
    monotonic, said = __import__("time").monotonic, False
    @classmethod
    def sleep(cls, seconds):
        if not cls.said:
            print("waiting", flush=True)
            cls.said = True
        __import__("time").sleep(seconds)
folder_lock.time = Time
"""

# Says so before the given call of one of the transaction's steps (or behind it), and stays there until interrupted.
STOP_AT = """
import time
from probe_patch.patcher import transaction
calls, genuine = 0, transaction.{step}
def stopping(*arguments):
    global calls
    calls += 1
    if calls == {call} and not {behind}: stop()
    answer = genuine(*arguments)
    if calls == {call} and {behind}: stop()
    return answer
def stop():
    print("here", flush=True)
    time.sleep(60)
transaction.{step} = stopping
"""


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """The folder's lock, as another run would hold it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


SAID = {signal.SIGINT: "interrupted", signal.SIGTERM: "ended by SIGTERM", signal.SIGHUP: "ended by SIGHUP"}


def assert_interrupted(process: subprocess.Popen[str], out: str, by: signal.Signals = signal.SIGINT) -> None:
    process.send_signal(by)
    with finished(process) as ((code, rest, err),):
        assert (code, rest) == (128 + by, out)
        assert err == f"probe-patch: {SAID[by]}; no file is half done\n"


def test_interrupted_while_it_waits(tmp_path: Path) -> None:
    actor = checkout(tmp_path)
    tree = contents(tmp_path)
    with held(actor.parent):
        process = start("apply", tmp_path, before=SAY_WAITING)
        assert read_line(process) == "waiting"
        assert_interrupted(process, "")
    assert contents(tmp_path) == tree


STOPS = [
    pytest.param("apply", "stage", 1, False, id="before anything is written"),
    pytest.param("apply", "stage", 3, True, id="with temporary files written"),
    pytest.param("apply", "rename_over", 1, False, id="before the first rename"),
    pytest.param("apply", "rename_over", 1, True, id="behind the first rename"),
    pytest.param("apply", "read", 5, False, id="behind the last rename"),
    pytest.param("revert", "rename_over", 2, True, id="behind the last rename of a revert"),
]


@pytest.mark.parametrize("by", SAID, ids=lambda number: number.name)
@pytest.mark.parametrize(("verb", "step", "call", "behind"), STOPS)
def test_interrupted_while_it_writes(
    tmp_path: Path, verb: str, step: str, call: int, behind: bool, by: signal.Signals
) -> None:
    before = ORIGINAL if verb == "apply" else PATCHED["ref"]
    for package in ("slime", "miles"):
        checkout(tmp_path, before, package)
    tree = contents(tmp_path)
    process = start(verb, tmp_path, before=STOP_AT.format(step=step, call=call, behind=behind))
    assert read_line(process) == "here"
    assert_interrupted(process, "", by)
    assert contents(tmp_path) == tree


def test_what_nohup_made_deaf_stays_so(tmp_path: Path) -> None:
    actor = checkout(tmp_path)
    stop = STOP_AT.format(step="rename_over", call=1, behind=True).replace("time.sleep(60)", "input()")
    process = start("apply", tmp_path, before=f"import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n{stop}")
    assert read_line(process) == "here"
    process.send_signal(signal.SIGHUP)
    assert process.stdin is not None
    process.stdin.write("\n")
    with finished(process) as ((code, _, _),):
        assert code == 0
    assert actor.read_bytes() == PATCHED["ref,old,actor"]


def test_the_next_run_is_not_kept_out_by_an_interrupted_one(tmp_path: Path) -> None:
    actor = checkout(tmp_path)
    process = start("apply", tmp_path, before=STOP_AT.format(step="rename_over", call=1, behind=True))
    assert read_line(process) == "here"
    assert_interrupted(process, "")
    with finished(start("apply", tmp_path, "--phases", "old")) as ((code, _, _),):
        assert code == 0
    assert actor.read_bytes() == PATCHED["old"]


def test_an_editor_that_saves_meanwhile_keeps_its_file(tmp_path: Path) -> None:
    """The run sees the edit before it renames, and gives up with a sentence."""
    actor = checkout(tmp_path)
    stop = STOP_AT.format(step="_require_unchanged", call=1, behind=False).replace("time.sleep(60)", "input()")
    process = start("apply", tmp_path, before=stop)
    assert read_line(process) == "here"
    actor.write_bytes(ORIGINAL + b"# saved meanwhile\n")
    assert process.stdin is not None
    process.stdin.write("\n")
    with finished(process) as ((code, out, err),):
        assert (code, out) == (4, "")
        assert err == f"probe-patch: {actor}: was changed by somebody else meanwhile; run the command again\n"
    assert actor.read_bytes() == ORIGINAL + b"# saved meanwhile\n"
    assert [path.name for path in actor.parent.iterdir()] == ["actor.py"]


# Interrupts itself when LibCST is first imported, long before there is a command; or when the command has ended.
WHILE_IMPORTING = """
import os, signal, sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "libcst": os.kill(os.getpid(), signal.{by})
sys.meta_path.insert(0, Interrupting())
"""
AT_THE_END = "import atexit, os, signal; atexit.register(lambda: os.kill(os.getpid(), signal.{by}))"


@pytest.mark.parametrize("by", SAID, ids=lambda number: number.name)
@pytest.mark.parametrize(("before", "heard"), [(WHILE_IMPORTING, True), (AT_THE_END, False)], ids=["start", "end"])
def test_interrupted_before_and_after_the_command(tmp_path: Path, before: str, heard: bool, by: signal.Signals) -> None:
    actor = checkout(tmp_path)
    with finished(start("apply", tmp_path, before=before.format(by=by.name))) as ((ended, _, err),):
        assert ended == (128 + by if heard else 0)
        assert "Traceback" not in err
        assert (f"probe-patch: {SAID[by]}; no file is half done" in err) == heard
    assert actor.read_bytes() == (ORIGINAL if heard else PATCHED["ref,old,actor"])
