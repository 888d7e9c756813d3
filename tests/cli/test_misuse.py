"""What a user gets wrong: one sentence, the right exit code, and nothing written."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.cli.running import run, the_sentence
from tests.cli.trees import ACTOR, ORIGINAL, checkout, contents
from tests.patcher.small_actor import edited

Prepare: TypeAlias = Callable[[Path], object]

VENDOR = edited(
    ("        if args.debug", '        dump_flag = int(os.environ.get("DUMP_ON", 0))\n        if args.debug')
)


def nothing(_: Path) -> None: ...


def a_file(name: str, content: bytes = b"") -> Prepare:
    return lambda folder: (folder / name).write_bytes(content)


def a_folder(name: str) -> Prepare:
    return lambda folder: (folder / name).mkdir(parents=True)


def a_link(name: str, to: str) -> Prepare:
    return lambda folder: (folder / name).symlink_to(to)


def an_actor(source: bytes, mode: int = 0o644) -> Prepare:
    return lambda folder: checkout(folder, source).chmod(mode)


TREES = [
    pytest.param(nothing, "nowhere", 4, "nowhere: no such file or folder; check the path", id="wrong path"),
    pytest.param(nothing, "", 2, "TREE is empty (a variable that is not set?)", id="empty path"),
    pytest.param(a_file("x.py", b"x = 1\n"), "x.py", 3, "x.py: is neither slime's actor nor SGLang's", id="a stranger"),
    pytest.param(nothing, "x" * 300, 4, "cannot be looked at (File name too long)", id="a name too long"),
    pytest.param(
        a_folder("other"), "other", 3, f"other: holds no slime/{ACTOR}, miles/{ACTOR} or sglang/", id="no slime"
    ),
    pytest.param(
        a_file("README.md"), "README.md", 3, "README.md: not a Python file; name a checkout", id="no Python file"
    ),
    pytest.param(
        a_file("actor.py"), "actor.py", 3, "actor.py: a top-level class named *TrainRayActor", id="empty file"
    ),
    pytest.param(a_folder("actor.py"), "actor.py", 3, "actor.py: holds no slime", id="a folder named actor.py"),
    pytest.param(a_folder(f"slime/{ACTOR}"), ".", 3, f"slime/{ACTOR}: is a folder, and a", id="a folder in its place"),
    pytest.param(a_link("dead.py", "gone.py"), "dead.py", 4, "dead.py: no such file", id="dangling link"),
    pytest.param(a_link("loop.py", "loop.py"), "loop.py", 4, "loop.py: no such file", id="link to itself"),
    pytest.param(lambda folder: os.mkfifo(folder / "a.py"), "a.py", 3, "a.py: neither a file nor a folder", id="fifo"),
    pytest.param(an_actor(VENDOR), ".", 3, "line 17: already carries msProbe's hand-made edits", id="vendor edits"),
    pytest.param(an_actor(b"def (:\n"), ".", 3, "line 1, column 5: does not parse as Python", id="no Python inside"),
    pytest.param(an_actor(ORIGINAL, 0o444), ".", 4, "is read-only (mode 0444); make it writable", id="read-only"),
]


@pytest.mark.parametrize(("prepare", "tree", "code", "reason"), TREES)
def test_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prepare: Prepare, tree: str, code: int, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    prepare(tmp_path)
    before = contents(tmp_path)
    outcome = run("apply", tree)
    assert reason in the_sentence(outcome)
    assert outcome.code == code
    assert contents(tmp_path) == before


OPTIONS = [
    pytest.param(
        ("--phases", "reff"), "--phases: 'reff' is no phase; give one or more of ref, old, actor", id="unknown"
    ),
    pytest.param(("--phases", "REF"), "'REF' is no phase", id="upper case"),
    pytest.param(("--phases", "ref old"), "'ref old' is no phase", id="no comma"),
    pytest.param(("--phases", "ref,train"), "'train' is no phase", id="one of two unknown"),
    pytest.param(("--phases", ""), "'' is no phase", id="empty"),
    pytest.param(("--phases", ","), "'' is no phase", id="a comma"),
    pytest.param(("--phases", " "), "'' is no phase", id="a space"),
    pytest.param(
        ("--config", "gone.json"), "gone.json does not exist; `probe-patch config init` writes", id="no config"
    ),
    pytest.param(("--config", "."), ". cannot be read: Is a directory", id="config is a folder"),
    pytest.param(("--config", "text.json"), "text.json:1:1: not JSON", id="config is no JSON"),
    pytest.param(
        ("--config", "accuracy.json"), 'accuracy.json: task is "acc_check", which probe-patch', id="unsupported task"
    ),
    pytest.param(
        ("--python", "python3"), "--python finds slime and SGLang where no TREE is named", id="tree and python"
    ),
]


@pytest.mark.parametrize(("options", "reason"), OPTIONS)
def test_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], reason: str) -> None:
    monkeypatch.chdir(tmp_path)
    checkout(tmp_path)
    (tmp_path / "text.json").write_text("DUMP_ON=1")
    (tmp_path / "accuracy.json").write_text('{"dump_path": "/d", "level": "L0", "task": "acc_check"}')
    before = contents(tmp_path)
    outcome = run("apply", ".", *options)
    assert reason in the_sentence(outcome)
    assert outcome.code == 2
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    "arguments",
    [("patch",), ("apply", "--phase"), ("apply", "--format", "yaml"), ("config", "show"), ("check", "--diff"), ()],
    ids=" ".join,
)
def test_what_click_refuses(arguments: tuple[str, ...]) -> None:
    outcome = run(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert "Usage: " in outcome.err


@pytest.mark.parametrize("name", ["msProbe", "", "builtin,msprobe", "mindstudio-probe"])
@pytest.mark.parametrize("command", ["apply", "check"])
def test_an_unknown_debugger(tmp_path: Path, command: str, name: str) -> None:
    actor = checkout(tmp_path)
    outcome = run(command, tmp_path, "--debugger", name)
    sentence = f"--debugger: {name!r} is no debugger; give builtin or msprobe"
    assert (outcome.code, the_sentence(outcome)) == (2, sentence)
    assert actor.read_bytes() == ORIGINAL


def test_clean_and_a_debugger_exclude_each_other(tmp_path: Path) -> None:
    checkout(tmp_path)
    outcome = run("check", tmp_path, "--clean", "--debugger", "msprobe")
    assert (outcome.code, the_sentence(outcome)) == (2, "--debugger has no meaning with --clean; leave one of them out")


def test_clean_and_phases_exclude_each_other(tmp_path: Path) -> None:
    checkout(tmp_path)
    outcome = run("check", tmp_path, "--clean", "--phases", "ref")
    assert (outcome.code, the_sentence(outcome)) == (2, "--phases has no meaning with --clean; leave one of them out")


EMPTY = [
    (("revert", ""), "TREE"),
    (("check", "."), None),
    (("check", ""), "TREE"),
    (("status", ".", ""), "TREE"),
    (("launch-args", ""), "TREE"),
    (("launch-args", "--config", ""), "--config"),
    (("apply", "--config", ""), "--config"),
    (("env", "--train-config", ""), "--train-config"),
    (("config", "check", ""), "FILE"),
    (("config", "init", ""), "FILE"),
]


@pytest.mark.parametrize(("arguments", "what"), EMPTY, ids=str)
def test_an_empty_word_is_not_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], what: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    checkout(tmp_path)
    outcome = run(*arguments)
    assert (outcome.code == 2) == (what is not None)
    if what is not None:
        assert the_sentence(outcome).startswith(f"{what} is empty (a variable that is not set?); ")


GONE = [("apply",), ("check",), ("status",), ("revert",), ("launch-args",), ("launch-args", "."), ("config", "init")]


@pytest.mark.parametrize("arguments", GONE, ids=" ".join)
def test_a_current_folder_that_is_gone(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    script = 'mkdir gone && cd gone && rmdir ../gone && shift && exec "$@"'
    command = ["sh", "-c", script, "sh", "-", sys.executable, "-c", "from probe_patch.entry import main; main()"]
    done = subprocess.run([*command, *arguments], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.startswith("probe-patch: the current directory: cannot be looked at (No such file or directory)")


@pytest.mark.parametrize("command", ["apply", "revert", "check", "status"])
def test_a_stranger_is_refused_by_every_command_with_what_is_patched(tmp_path: Path, command: str) -> None:
    stranger = tmp_path / "train.py"
    stranger.write_text("print('hello')\n")
    outcome = run(command, stranger)
    assert outcome.code == 3
    sentence = the_sentence(outcome)
    assert sentence.startswith(f"{stranger}: is neither slime's actor nor SGLang's model runner; what is patched is ")
    assert stranger.read_text() == "print('hello')\n"


def test_a_stranger_with_markers_of_ours_is_reverted(tmp_path: Path) -> None:
    stranger = tmp_path / "train.py"
    stranger.write_bytes(b"# >>> probe-patch init\nx = 1\n# <<< probe-patch init\nprint('hello')\n")
    assert run("revert", stranger).code == 0
    assert stranger.read_bytes() == b"print('hello')\n"


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that others may look into; pytest's own are private."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_a_file_of_somebody_else(
    open_folder: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is not root cannot become somebody else, and only claims to be."""
    actor = checkout(open_folder)
    owner = actor.owner()
    actor.chmod(0o444)
    request.getfixturevalue("as_nobody")
    monkeypatch.setattr(os, "geteuid", lambda: 65534)
    sentence = the_sentence(run("apply", actor))
    assert sentence.startswith(
        f"{actor}: belongs to {owner}, and you may not write it (mode 0444); run this as {owner}"
    )


def test_a_path_that_starts_with_a_dash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    actor = checkout(tmp_path / "--diff")
    assert run("apply", "--", "--diff").code == 0
    assert actor.read_bytes() != ORIGINAL


@pytest.fixture
def as_nobody() -> Iterator[None]:
    """Root may look everywhere, so the test is somebody else for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("command", ["apply", "revert", "check", "status"])
def test_a_folder_that_the_user_may_not_look_into(tmp_path: Path, request: pytest.FixtureRequest, command: str) -> None:
    checkout(tmp_path / "private")
    (tmp_path / "private").chmod(0)
    request.getfixturevalue("as_nobody")
    outcome = run(command, tmp_path / "private" / "slime")
    assert outcome.code == 4
    assert "cannot be looked at (Permission denied)" in the_sentence(outcome)
