"""One tree that holds slime and SGLang: one command does both, and all or nothing holds over both."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from probe_patch import __version__
from probe_patch.patcher.request import Request
from probe_patch.patcher.rewrite import apply
from tests.cli.running import run
from tests.cli.trees import ORIGINAL, checkout, contents
from tests.patcher.sglang.small_runner import SMALL_RUNNER

RUNNER = SMALL_RUNNER.encode()
NATIVE = RUNNER.replace(b"self.seen = []", b"self.seen = []; self.init_msprobe()")
SLIME = "slime/backends/megatron_utils/actor.py"
SGLANG = "sglang/srt/model_executor/model_runner.py"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def both(folder: Path, actor: bytes = ORIGINAL, runner: bytes = RUNNER) -> tuple[Path, Path]:
    """A site-packages folder with both."""
    file = folder / SGLANG
    file.parent.mkdir(parents=True)
    file.write_bytes(runner)
    return checkout(folder, actor), file


@pytest.mark.parametrize("options", [(), ("--phases", "ref"), ("--phases", "old,actor")], ids=" ".join)
def test_the_whole_loop(here: Path, options: tuple[str, ...]) -> None:
    _, runner = both(here)
    before = contents(here)
    phases = options[1].replace(",", ", ") if options else "ref, old, actor"

    assert run("check", "--can-apply", *options).code == 0
    applied = run("apply", *options)
    assert (applied.code, applied.out) == (0, f"{SLIME}: patched for {phases}\n{SGLANG}: patched for rollout\n")
    assert f"note: {SGLANG}: what its server must be started with" in applied.err
    assert runner.read_bytes() == apply(RUNNER, Request(), "model_runner.py").source
    patched = contents(here)
    again = run("apply", *options)
    assert (again.code, again.out.count(": already patched for"), again.err) == (0, 2, "")
    assert contents(here) == patched

    checked = run("check", *options)
    assert (checked.code, checked.out) == (
        0,
        f"{SLIME}: patched for {phases} by probe-patch {__version__}\n"
        f"{SGLANG}: patched for rollout by probe-patch {__version__}\n",
    )
    assert run("status").out == checked.out
    assert run("check", "--clean").code == 1
    reverted = run("revert")
    assert (reverted.code, reverted.out) == (0, f"{SLIME}: reverted\n{SGLANG}: reverted\n")
    assert contents(here) == before


def test_other_phases_change_slime_alone(here: Path) -> None:
    _, runner = both(here)
    run("apply")
    patched = runner.read_bytes()
    outcome = run("check", "--phases", "ref")
    assert outcome.code == 1
    assert outcome.err == f"note: {SLIME}: is patched for phases ref,old,actor, not ref\n"
    assert run("apply", "--phases", "ref").out.endswith(f"{SGLANG}: already patched for rollout\n")
    assert runner.read_bytes() == patched
    assert run("check", "--phases", "ref").code == 0


def test_one_of_the_two_is_not_enough_for_check(here: Path) -> None:
    both(here)
    run("apply", SLIME)
    assert run("check", SLIME).code == 0
    outcome = run("check")
    assert (outcome.code, outcome.err) == (1, f"note: {SGLANG}: is not patched; run probe-patch apply\n")


def test_json_has_the_side_of_each(here: Path) -> None:
    both(here)
    run("apply", "--phases", "ref")
    train, rollout = json.loads(run("status", "--format", "json").out)["files"]
    assert (train["side"], train["phases"], train["patched_by"]) == ("train", ["ref"], __version__)
    assert (rollout["side"], rollout["phases"], rollout["patched_by"]) == ("rollout", [], __version__)


BROKEN = [
    pytest.param(b"x = (\n", RUNNER, SLIME, id="slime"),
    pytest.param(ORIGINAL, b"x = (\n", SGLANG, id="sglang"),
    pytest.param(ORIGINAL, RUNNER.replace(b"def forward(", b"async def forward("), SGLANG, id="sglang's anchor"),
]


@pytest.mark.parametrize(("actor", "runner", "refused"), BROKEN)
def test_one_refused_stops_both(here: Path, actor: bytes, runner: bytes, refused: str) -> None:
    both(here, actor, runner)
    before = contents(here)
    outcome = run("apply")
    assert (outcome.code, outcome.out) == (3, "")
    assert f"probe-patch: {refused}" in outcome.err
    assert outcome.err.endswith("probe-patch: nothing was written\n")
    assert contents(here) == before


@pytest.mark.parametrize("protected", [SLIME, SGLANG])
def test_one_read_only_stops_both(here: Path, protected: str) -> None:
    both(here)
    (here / protected).chmod(0o444)
    before = contents(here)
    assert run("apply").code == 4
    assert contents(here) == before


def test_damaged_markers_of_one_keep_both_from_being_reverted(here: Path) -> None:
    _, runner = both(here)
    run("apply")
    runner.write_bytes(runner.read_bytes().replace(b"    # <<< probe-patch init\n", b""))
    before = contents(here)
    assert run("revert").code == 3
    assert contents(here) == before


def test_a_native_sglang_is_left_as_it_is_beside_slime(here: Path) -> None:
    actor, runner = both(here, runner=NATIVE)
    for command in (("check", "--can-apply"), ("apply",), ("check",), ("status",)):
        outcome = run(*command)
        assert outcome.code == 0
        assert outcome.out.endswith(f"{SGLANG}: carries its own hook; needs no patch\n")
        assert f"note: {SGLANG}: SGLang 0.5.11 or later needs no patch" in outcome.err
        assert "--sglang-" in outcome.err
    assert b"probe-patch" in actor.read_bytes()
    assert runner.read_bytes() == NATIVE
    (_, native) = json.loads(run("check", "--format", "json").out)["files"]
    assert (native["state"], native["as_expected"], native["changed"]) == ("native", True, False)
    assert run("revert").code == 0
    assert (actor.read_bytes(), runner.read_bytes()) == (ORIGINAL, NATIVE)


@pytest.mark.parametrize("tree", [SGLANG, "sglang"])
def test_a_native_sglang_alone_is_refused_with_the_flags(here: Path, tree: str) -> None:
    both(here, runner=NATIVE)
    for command in (("apply",), ("apply", "--diff"), ("check", "--can-apply")):
        outcome = run(*command, tree)
        assert (outcome.code, outcome.out) == (3, "")
        assert f"probe-patch: {SGLANG}: SGLang 0.5.11 or later needs no patch" in outcome.err
    assert run("check", "--clean", tree).code == 0


@pytest.mark.parametrize("tree", [SGLANG, "sglang"])
def test_check_finds_a_native_sglang_alone_as_it_should_be(here: Path, tree: str) -> None:
    both(here, runner=NATIVE)
    outcome = run("check", tree)
    assert (outcome.code, outcome.out) == (0, f"{SGLANG}: carries its own hook; needs no patch\n")
    assert f"note: {SGLANG}: SGLang 0.5.11 or later needs no patch" in outcome.err
    (file,) = json.loads(run("check", tree, "--format", "json").out)["files"]
    assert (file["state"], file["as_expected"], file["error"]) == ("native", True, None)


@pytest.mark.parametrize(("modes", "cache"), [(["extend"], True), (["decode"], False)])
def test_a_config_that_cannot_be_written_down_for_a_native_sglang_is_said(
    here: Path, modes: list[str], cache: bool
) -> None:
    both(here, runner=NATIVE)
    config = here / "c.json"
    config.write_text(json.dumps({"dump_path": "/d", "level": "L0", "rollout": {"modes": modes}}))
    outcome = run("apply", "--config", "c.json")
    assert outcome.code == 0
    assert (
        f"note: {SGLANG}: is not patched, so {config} is not written down for it; set PROBE_PATCH_ROLL" in outcome.err
    )
    assert f"(probe-patch env --config {config})" in outcome.err
    assert ("--disable-radix-cache" in outcome.err) == cache
    assert "not written down" not in run("apply").err
    alone = run("apply", "--config", "c.json", "sglang")
    assert alone.code == 3
    assert f"probe-patch: {SGLANG}: SGLang 0.5.11 or later needs no patch" in alone.err


HOLLOW = [
    pytest.param(SGLANG, "sglang", "srt/model_executor/model_runner.py", id="sglang"),
    pytest.param(SLIME, "slime", "backends/megatron_utils/actor.py", id="slime"),
]


@pytest.mark.parametrize(("file", "package", "lacks"), HOLLOW)
@pytest.mark.parametrize("command", [("apply",), ("check",), ("check", "--can-apply")], ids=" ".join)
def test_a_package_without_its_file_beside_a_good_one_is_said(
    here: Path, command: tuple[str, ...], file: str, package: str, lacks: str
) -> None:
    both(here)
    (here / file).unlink()
    outcome = run(*command)
    assert outcome.code == (1 if command == ("check",) else 0)
    assert f"is not patched together with {package}: it holds no {lacks}, so it is broken or only a part" in outcome.err
    alone = run(*command, package)
    assert alone.code == 3
    assert f"probe-patch: {package}: it holds no {lacks}" in alone.err


def test_a_client_without_a_runtime_is_said_and_a_checkout_of_the_name_is_none(here: Path) -> None:
    checkout(here)
    (here / "sglang").mkdir()
    assert "sglang" not in run("apply").err
    (here / "sglang" / "__init__.py").touch()
    assert run("apply").err.startswith(f"note: {SLIME}: is not patched together with sglang: it holds no srt/")


IRREGULAR = [
    pytest.param(lambda path: path.mkdir(), 3, "is a folder, and a Python file must be there", id="folder"),
    pytest.param(os.mkfifo, 3, "is no regular file, and a Python file must be there", id="fifo"),
    pytest.param(lambda path: path.symlink_to("gone"), 4, "is a symbolic link that leads nowhere", id="dangling"),
    pytest.param(lambda path: path.symlink_to(path.name), 4, "is a symbolic link that leads nowhere", id="loop"),
]


@pytest.mark.parametrize(("put", "code", "reason"), IRREGULAR)
@pytest.mark.parametrize("file", [SLIME, SGLANG])
def test_what_is_no_file_in_the_place_of_one_stops_both(
    here: Path, file: str, put: Callable[[Path], None], code: int, reason: str
) -> None:
    both(here)
    (here / file).unlink()
    put(here / file)
    before = contents(here)
    for arguments in (("apply",), ("check",), ("apply", str(Path(file).parent))):
        outcome = run(*arguments)
        assert outcome.code == code
        assert f"{reason}; " in outcome.err
        assert Path(file).name in outcome.err
    assert contents(here) == before


def test_a_native_sglang_does_not_hide_that_slime_is_refused(here: Path) -> None:
    both(here, b"x = (\n", NATIVE)
    before = contents(here)
    outcome = run("apply")
    assert outcome.code == 3
    assert f"probe-patch: {SLIME}, line 1" in outcome.err
    assert contents(here) == before
