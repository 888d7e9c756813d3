"""Which files a command is about: every kind of tree, the current folder, an interpreter's packages, and no import."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from probe_patch.errors import ProbePatchError, Refused, SystemFailed, WrongUsage
from probe_patch.patcher.discovery import Target, find_targets
from tests.cli.running import run, run_in_process
from tests.cli.trees import ACTOR, checkout

EARLY = "ray/ppo_actor.py"
FSDP = "backends/fsdp_utils/actor.py"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


TREES = [
    ("checkout", "checkout/slime"),
    ("src layout", "checkout/src/slime"),
    ("site-packages", "lib/python3.11/site-packages/slime"),
    ("fork", "checkout/miles"),
]


@pytest.mark.parametrize(("kind", "package"), TREES)
def test_every_way_to_name_a_tree(here: Path, kind: str, package: str) -> None:
    actor = touch(here / package / ACTOR)
    root = Path(package).parent.parent if kind == "src layout" else Path(package).parent
    for tree in (root, Path(package), Path(package, "backends"), Path(package, ACTOR).parent, Path(package, ACTOR)):
        (target,) = find_targets([tree])
        assert target == Target(actor, str(Path(package, ACTOR))), tree
        (target,) = find_targets([here / tree])
        assert target == Target(actor, str(actor)), tree


@pytest.mark.parametrize("place", [".", "slime", "slime/backends", "slime/backends/megatron_utils"])
def test_the_current_folder_may_be_any_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    actor = touch(tmp_path / "slime" / ACTOR)
    monkeypatch.chdir(tmp_path / place)
    (target,) = find_targets([])
    assert target == Target(actor, str(actor.relative_to(Path.cwd())))


RUNNER = "srt/model_executor/model_runner.py"
EARLY_RUNNER = "srt/managers/controller/model_runner.py"
SGLANG_TREES = [
    pytest.param(".", "python/sglang", RUNNER, id="checkout"),
    pytest.param("python", "python/sglang", RUNNER, id="python folder of a checkout"),
    pytest.param(".", "sglang", RUNNER, id="site-packages"),
    pytest.param("sglang", "sglang", RUNNER, id="package"),
    pytest.param("sglang/srt", "sglang", RUNNER, id="folder on the way"),
    pytest.param("sglang/srt/model_executor", "sglang", RUNNER, id="last folder"),
    pytest.param(f"sglang/{RUNNER}", "sglang", RUNNER, id="file"),
    pytest.param(".", "python/sglang", EARLY_RUNNER, id="checkout until 0.2.6"),
    pytest.param("sglang", "sglang", EARLY_RUNNER, id="package until 0.2.6"),
    pytest.param("sglang/srt/managers", "sglang", EARLY_RUNNER, id="folder on the way until 0.2.6"),
    pytest.param("sglang/srt/managers/controller", "sglang", EARLY_RUNNER, id="last folder until 0.2.6"),
]


@pytest.mark.parametrize(("tree", "package", "file"), SGLANG_TREES)
def test_every_way_to_name_an_sglang(
    here: Path, monkeypatch: pytest.MonkeyPatch, tree: str, package: str, file: str
) -> None:
    runner = touch(here / package / file)
    assert find_targets([Path(tree)]) == (Target(runner, str(Path(package, file))),)
    if (here / tree).is_dir():
        monkeypatch.chdir(here / tree)
        assert find_targets([]) == (Target(runner, str(runner.relative_to(here / tree))),)


def test_what_is_imported_wins_over_what_an_older_installation_left(here: Path) -> None:
    touch(here / "sglang" / EARLY_RUNNER)
    runner = touch(here / "sglang" / RUNNER)
    assert [target.path for target in find_targets([here])] == [runner]


def test_a_tree_with_both_gives_both(here: Path) -> None:
    found = [touch(here / "slime" / ACTOR), touch(here / "miles" / ACTOR), touch(here / "sglang" / RUNNER)]
    assert [target.path for target in find_targets([here])] == found
    assert [target.path for target in find_targets([])] == found


def test_slime_in_the_current_folder_and_sglang_in_the_interpreter(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    actor, runner = checkout(here), touch(here / "packages" / "sglang" / RUNNER)
    touch(runner.parents[2] / "__init__.py")
    monkeypatch.syspath_prepend(here / "packages")
    assert [target.path for target in find_targets([])] == [actor, runner]


def test_an_sglang_from_before_the_first_that_is_known(here: Path) -> None:
    touch(here / "sglang" / "srt/managers/router/model_runner.py")
    with pytest.raises(Refused, match=r"router/model_runner\.py: this is SGLang from before 0\.2\.0"):
        find_targets([here])


@pytest.mark.parametrize(("file", "reason"), [(EARLY, "this is slime from before"), (FSDP, "only the FSDP backend")])
def test_a_slime_that_cannot_be_patched_is_said_where_sglang_can(here: Path, file: str, reason: str) -> None:
    touch(here / "slime" / file)
    touch(here / "sglang" / RUNNER)
    (target,) = find_targets([here])
    (note,) = target.notes
    assert note.startswith(f"is not patched together with {here / 'slime' / file}: this ")
    assert reason in note


def test_a_folder_that_only_ends_alike_is_not_the_package(here: Path) -> None:
    touch(here / "other" / "actor.py")
    with pytest.raises(Refused, match="other: holds no slime"):
        find_targets([Path("other")])


def test_several_trees_in_their_order_and_none_twice(here: Path) -> None:
    for name in ("b", "a"):
        touch(here / name / "slime" / ACTOR)
        touch(here / name / "miles" / ACTOR)
    (here / "link").symlink_to("a")
    shown = [target.shown for target in find_targets([Path(name) for name in ("b", "link", "a", "b/miles")])]
    assert shown == [f"{tree}/{package}/{ACTOR}" for tree in ("b", "link") for package in ("slime", "miles")]


def test_both_backends_are_noted(here: Path) -> None:
    touch(here / "slime" / ACTOR)
    assert find_targets([here])[0].notes == ()
    touch(here / "slime" / FSDP)
    assert find_targets([here])[0].notes == ("the FSDP backend beside it is not patched: its runs do not dump",)


UNSUPPORTED = [
    (EARLY, "this is slime from before 2025-07-18, which probe-patch does not know; use slime v0.1.0 or later"),
    (FSDP, "this slime has only the FSDP backend; probe-patch patches the Megatron one"),
]


@pytest.mark.parametrize("layout", ["slime", "src/slime", "miles"])
@pytest.mark.parametrize(("file", "reason"), UNSUPPORTED)
def test_a_slime_with_nothing_to_patch_is_named(here: Path, layout: str, file: str, reason: str) -> None:
    touch(here / layout / file)
    for trees in ([], [Path()], [here / layout]):
        with pytest.raises(Refused, match=reason) as caught:
            find_targets(trees)
        assert f"{layout}/{file}: " in str(caught.value)


def test_no_slime_anywhere(here: Path) -> None:
    with pytest.raises(Refused) as caught:
        find_targets([])
    assert str(caught.value) == (
        f"no slime, miles or sglang in {here}, and this Python imports none: "
        "name the checkout, site-packages or the file to patch, or the interpreter with --python"
    )


def test_a_current_folder_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    try:
        with pytest.raises(SystemFailed, match="the current directory: cannot be looked at"):
            find_targets([])
    finally:
        os.chdir(tmp_path)


BOOBY_TRAP = "import pathlib\npathlib.Path(__file__).with_name('imported').touch()\nraise SystemExit('imported')\n"


def booby_trapped(folder: Path) -> Path:
    """A package that would betray that it was imported, and each of the packages in it."""
    actor = checkout(folder, BOOBY_TRAP.encode())
    for package in (actor.parents[2], actor.parents[1], actor.parents[0]):
        (package / "__init__.py").write_text(BOOBY_TRAP)
    return actor


def assert_nothing_imported(folder: Path) -> None:
    assert not list(folder.rglob("imported"))
    assert not list(folder.rglob("*.pyc"))


def test_this_interpreter_is_asked_without_an_import(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    actor = booby_trapped(here / "packages")
    monkeypatch.syspath_prepend(here / "packages")
    assert find_targets([]) == (Target(actor, str(actor)),)
    assert "slime" not in sys.modules
    assert_nothing_imported(here)


@pytest.mark.parametrize("options", [(), ("--python", sys.executable)], ids=["this", "another"])
def test_no_command_imports_what_it_patches(tmp_path: Path, options: tuple[str, ...]) -> None:
    """PYTHONPATH is what both interpreters see; the actor in it is refused, since it is a trap and no actor."""
    actor = booby_trapped(tmp_path / "packages")
    (tmp_path / "empty").mkdir()
    for command in ("apply", "revert", "check", "status"):
        outcome = run_in_process(
            command, *options, cwd=tmp_path / "empty", env={"PYTHONPATH": str(tmp_path / "packages")}
        )
        assert str(actor) in outcome.out + outcome.err
        assert "imported" not in outcome.err
    assert_nothing_imported(tmp_path)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment without pip."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return folder


def site_packages(environment: Path) -> Path:
    (folder,) = environment.glob("lib/python*/site-packages")
    return folder


def test_another_interpreter_installed(here: Path, environment: Path) -> None:
    actor = booby_trapped(site_packages(environment))
    python = str(environment / "bin" / "python")
    try:
        assert find_targets([], python) == (Target(actor, str(actor)),)
        assert run("check", "--clean", "--python", python).code == 0
        assert_nothing_imported(site_packages(environment))
    finally:
        shutil.rmtree(site_packages(environment) / "slime")


def test_another_interpreter_editable(here: Path, environment: Path) -> None:
    actor = booby_trapped(here / "elsewhere" / "src")
    link = site_packages(environment) / "__editable__.slime.pth"
    link.write_text(f"{here / 'elsewhere' / 'src'}\n")
    try:
        assert find_targets([], str(environment / "bin" / "python")) == (Target(actor, str(actor)),)
        assert_nothing_imported(here)
    finally:
        link.unlink()


def test_the_current_folder_comes_first(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, theirs = checkout(here), checkout(here / "packages")
    for actor in (mine, theirs):
        touch(actor.parents[2] / "__init__.py")
    monkeypatch.setenv("PYTHONPATH", str(here / "packages"))
    # -c puts the current folder before PYTHONPATH, so this interpreter would import mine too: it is one target.
    assert find_targets([], sys.executable) == (Target(mine, f"slime/{ACTOR}"),)
    monkeypatch.syspath_prepend(here / "packages")
    assert [target.path for target in find_targets([])] == [mine, theirs]


def executable(path: Path, script: str) -> str:
    path.write_text(script)
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("noise", ["print('hello')", "print('half a line', end='')", "print('[1]\\n{}')"])
def test_an_interpreter_that_prints_as_it_starts_and_ends(
    here: Path, monkeypatch: pytest.MonkeyPatch, noise: str
) -> None:
    (here / "noise").mkdir()
    (here / "noise" / "sitecustomize.py").write_text(
        f"import atexit, sys\nsys.stdout.buffer.write(b'\\xff\\n')\n{noise}\natexit.register(print, 'good bye')\n"
    )
    actor = checkout(here / "noise")
    monkeypatch.setenv("PYTHONPATH", str(here / "noise"))
    assert find_targets([], sys.executable) == (Target(actor, str(actor)),)


NO_PYTHON = [
    ("#!/bin/sh\nexit 0\n", r"\(it printed no list of folders; is it a Python interpreter\?\)"),
    ("#!/bin/sh\necho hello\n", r"\(it printed no list of folders; is it a Python interpreter\?\)"),
    ("#!/bin/sh\necho '[1, 2]'; echo 5; echo '{}'\n", "it printed no list of folders"),
    ("#!/bin/sh\nprintf '\\377'\n", "it printed no list of folders"),
    ("#!/bin/sh\necho first >&2; echo the reason >&2; exit 3\n", r"\(the reason\)"),
    ("#!/bin/sh\nexit 3\n", "returned non-zero exit status 3"),
    ("not a program\n", r"\(Exec format error\)"),
    ("#!/gone/interpreter\n", r"\(No such file or directory\)"),
]


@pytest.mark.parametrize(("script", "reason"), NO_PYTHON)
def test_an_interpreter_that_is_none(here: Path, script: str, reason: str) -> None:
    python = executable(here / "python", script)
    with pytest.raises(WrongUsage, match=f"^--python {python}: cannot be asked what it imports .*{reason}"):
        find_targets([], python)


def test_an_interpreter_does_not_take_the_users_input(here: Path) -> None:
    """What is piped into the command is not the interpreter's to read, nor may it wait for a terminal."""
    python = executable(here / "python", "#!/bin/sh\nread line && exit 0; echo no input >&2; exit 1\n")
    command = [sys.executable, "-m", "probe_patch", "status", "--python", python]
    answer = subprocess.run(command, input="a line\n", capture_output=True, text=True)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr.endswith("cannot be asked what it imports (no input)\n")


@pytest.mark.parametrize(
    ("python", "reason"),
    [("gone", "No such file or directory"), (".", "Permission denied")],
)
def test_an_interpreter_that_cannot_be_run(here: Path, python: str, reason: str) -> None:
    with pytest.raises(WrongUsage, match=rf"cannot be asked what it imports \({reason}\)"):
        find_targets([], python)


def test_an_interpreter_that_imports_no_slime(here: Path) -> None:
    with pytest.raises(Refused, match=f"no slime, miles or sglang in {here}, and {sys.executable} imports none"):
        find_targets([], sys.executable)


def test_an_interpreter_and_a_tree_exclude_each_other(here: Path) -> None:
    touch(here / "slime" / ACTOR)
    with pytest.raises(WrongUsage, match="--python finds slime and SGLang where no TREE is named"):
        find_targets([here], sys.executable)


LINKS = [("file", ACTOR, True), ("package", "", False), ("folder on the way", "backends", False)]


@pytest.mark.parametrize(("what", "linked", "noted"), LINKS)
def test_links(here: Path, what: str, linked: str, noted: bool) -> None:
    actor = touch(here / "real" / ACTOR)
    link = here / "slime" / linked
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(here / "real" / linked)
    (target,) = find_targets([here])
    assert (target.path, target.shown) == (actor, str(here / "slime" / ACTOR))
    assert target.notes == ((f"is a symbolic link; the file patched is {actor}",) if noted else ())


def test_errors_are_ours_whatever_the_path(here: Path) -> None:
    for name in ("x" * 5000, "a/" * 3000, "\udcff", "slime\n", "~", "*", "actor.py/x"):
        with pytest.raises(ProbePatchError):
            find_targets([Path(name)])
