"""``apply`` and ``revert`` killed at each system call that touches a file: all stay whole, and the next command works.

strace numbers the calls of one run, and kills later runs on entering each. What happens before the lock is taken
(Python starting, modules being imported) is the same for every command and is left out.
"""

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
from click.testing import CliRunner

from probe_patch.cli import main
from probe_patch.patcher.request import Request
from probe_patch.patcher.rewrite import apply
from tests.needs import needs
from tests.patcher.sglang.small_runner import SMALL_RUNNER
from tests.patcher.small_actor import SMALL_ACTOR
from tests.processes import heed_interrupts

STRACE = shutil.which("strace")
Contents: TypeAlias = tuple[bytes, ...]

FILES = ("slime/backends/megatron_utils/actor.py", "sglang/srt/model_executor/model_runner.py")
OLD = (SMALL_ACTOR.encode(), SMALL_RUNNER.encode())
NEW = tuple(apply(old, Request(), file).source for old, file in zip(OLD, FILES, strict=True))
TOUCH_FILES = ("flock", "openat", "write", "fchmod", "fchown", "fsetxattr", "fsync", "rename", "unlink", "close")


def lay_out(tree: Path, contents: Contents) -> list[Path]:
    """slime and SGLang side by side."""
    shutil.rmtree(tree, ignore_errors=True)
    paths = [tree / file for file in FILES]
    for path, content in zip(paths, contents, strict=True):
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
    return paths


def read(paths: list[Path]) -> Contents:
    return tuple(path.read_bytes() for path in paths)


def run_traced(verb: str, tree: Path, log: Path, *options: str) -> int:
    script = "from probe_patch.entry import main; main()"
    command = [str(STRACE), "-f", "-o", str(log), *options, sys.executable, "-c", script, verb, str(tree)]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}
    return subprocess.run(command, capture_output=True, env=environment, preexec_fn=heed_interrupts).returncode


def calls_behind_the_lock(log: str) -> Iterator[tuple[str, int]]:
    """Name and ordinal (among the calls of that name in the whole run) of each call from the first ``flock`` on."""
    seen: Counter[str] = Counter()
    for line in log.splitlines():
        call = re.match(r"\d+ +(\w+)\(", line)
        if call and call[1] in TOUCH_FILES:
            seen[call[1]] += 1
            if seen["flock"]:
                yield call[1], seen[call[1]]


@pytest.mark.parametrize(("verb", "before", "after"), [("apply", OLD, NEW), ("revert", NEW, OLD)])
def test_killed_at_every_system_call(tmp_path: Path, verb: str, before: Contents, after: Contents) -> None:
    needs(STRACE is not None, "strace is not installed (Debian: apt-get install strace)")
    tree, log = tmp_path / "tree", tmp_path / "calls"
    for _ in range(2):  # the first run may still find something to cache
        paths = lay_out(tree, before)
        assert run_traced(verb, tree, log) == 0
    assert read(paths) == after
    calls = list(calls_behind_the_lock(log.read_text()))
    assert Counter(name for name, _ in calls)["rename"] == 2

    states: Counter[tuple[bool, bool]] = Counter()
    for name, number in calls:
        lay_out(tree, before)
        assert run_traced(verb, tree, log, "-e", f"inject={name}:signal=KILL:when={number}") != 0, (name, number)
        contents = read(paths)
        for content, old, new in zip(contents, before, after, strict=True):
            assert content in (old, new), f"half written by a kill at {name} number {number}"
        states[contents[0] == after[0], contents[1] == after[1]] += 1

        assert CliRunner().invoke(main, [verb, str(tree)]).exit_code == 0
        assert read(paths) == after
        assert {path for path in tree.rglob("*") if path.is_file()} == set(paths), "a temporary file was left"
    assert set(states) == {(False, False), (True, False), (True, True)}, "the kills missed the moments that matter"


@pytest.mark.parametrize(("verb", "before", "after"), [("apply", OLD, NEW), ("revert", NEW, OLD)])
def test_interrupted_at_every_rename_and_unlink(tmp_path: Path, verb: str, before: Contents, after: Contents) -> None:
    """Ctrl-C either undoes everything and says so, or comes too late and does nothing."""
    needs(STRACE is not None, "strace is not installed (Debian: apt-get install strace)")
    tree, log = tmp_path / "tree", tmp_path / "calls"
    for _ in range(2):
        paths = lay_out(tree, before)
        assert run_traced(verb, tree, log) == 0
    calls = [call for call in calls_behind_the_lock(log.read_text()) if call[0] in ("rename", "unlink")]
    ends = set()
    for name, number in calls:
        lay_out(tree, before)
        code = run_traced(verb, tree, log, "-e", f"inject={name}:signal=INT:when={number}")
        ends.add(code)
        assert (code, read(paths)) in [(0, after), (130, before)], f"interrupted at {name} number {number}"
        assert {path for path in tree.rglob("*") if path.is_file()} == set(paths), "a temporary file was left"
    assert ends == {0, 130}
