"""Markers that somebody damaged: every command says which line, and none touches the file."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.running import run, the_sentence
from tests.cli.trees import ORIGINAL, checkout, contents

END_OF_PRELUDE = b"# <<< probe-patch prelude\n"
BEGIN_OF_INIT = b"        # >>> probe-patch init\n"

DAMAGES = [
    pytest.param(END_OF_PRELUDE, b"", "is not closed before it", id="end removed"),
    pytest.param(BEGIN_OF_INIT, b"", "it closes a block that was not opened", id="begin removed"),
    pytest.param(BEGIN_OF_INIT, BEGIN_OF_INIT * 2, "is not closed before it", id="begin twice"),
    pytest.param(END_OF_PRELUDE, END_OF_PRELUDE * 2, "it closes a block that was not opened", id="end twice"),
    pytest.param(END_OF_PRELUDE, b"# <<< probe-patch init\n", "it closes a block that was not opened", id="renamed"),
    pytest.param(b"# >>> probe-patch init", b"#>>> probe-patch init", "resembles a probe-patch marker", id="squeezed"),
    pytest.param(b"# >>> probe-patch init", b"x = 1  # >>> probe-patch init", "resembles a", id="code before it"),
    pytest.param(END_OF_PRELUDE, b"<<<<<<< HEAD\n" + END_OF_PRELUDE + b"=======\n", "", id="merge conflict"),
]


@pytest.fixture
def damage(tmp_path: Path) -> Callable[[bytes, bytes], Path]:
    actor = checkout(tmp_path)
    run("apply", tmp_path)

    def replace(old: bytes, new: bytes) -> Path:
        source = actor.read_bytes()
        assert source.count(old) == 1
        actor.write_bytes(source.replace(old, new))
        return actor

    return replace


@pytest.mark.parametrize("command", ["apply", "revert", "check", "status"])
@pytest.mark.parametrize(("old", "new", "reason"), [damage for damage in DAMAGES if damage.id != "merge conflict"])
def test_damaged_markers_are_refused_by_every_command(
    tmp_path: Path, damage: Callable[[bytes, bytes], Path], command: str, old: bytes, new: bytes, reason: str
) -> None:
    actor = damage(old, new)
    before = contents(tmp_path)
    outcome = run(command, tmp_path)
    assert outcome.code == 3
    sentence = the_sentence(outcome)
    assert sentence.startswith(f"{actor}, line ")
    assert reason in sentence
    assert contents(tmp_path) == before


def test_a_merge_conflict_in_a_block_can_be_reverted_but_not_applied(
    tmp_path: Path, damage: Callable[[bytes, bytes], Path]
) -> None:
    """The block goes, and the conflict's lines in it; what stands outside is the user's to mend."""
    conflict = b"<<<<<<< HEAD\n" + END_OF_PRELUDE + b"=======\n"
    actor = damage(END_OF_PRELUDE, conflict)
    before = contents(tmp_path)
    outcome = run("apply", tmp_path)
    assert outcome.code == 3
    assert "does not parse as Python" in the_sentence(outcome)
    assert contents(tmp_path) == before
    assert run("revert", tmp_path).code == 0
    assert actor.read_bytes() == ORIGINAL.replace(b"import os\n", b"=======\nimport os\n", 1)


@pytest.mark.parametrize("detail", [b" {}", b' {"version": 1, "phases": "ref", "config": null}', b""])
def test_an_opening_marker_that_cannot_be_read_is_outdated(
    tmp_path: Path, damage: Callable[[bytes, bytes], Path], detail: bytes
) -> None:
    actor = checkout(tmp_path / "other")
    run("apply", tmp_path / "other")
    line = actor.read_bytes().splitlines()[3]
    assert line.startswith(b"# >>> probe-patch prelude {")
    actor = damage(line, b"# >>> probe-patch prelude" + detail)

    status = run("status", actor)
    assert (status.code, status.out) == (0, f"{actor}: patched otherwise than expected\n")
    check = run("check", actor)
    assert (check.code, check.out) == (1, f"{actor}: patched otherwise than expected\n")
    assert "its opening marker was changed by hand; run probe-patch apply" in check.err
    assert run("revert", actor).code == 0
    assert actor.read_bytes() == ORIGINAL


def test_a_block_whose_markers_are_gone_is_refused_by_apply_and_said_by_line(tmp_path: Path) -> None:
    actor = checkout(tmp_path)
    run("apply", tmp_path)
    lines = actor.read_bytes().splitlines(keepends=True)
    actor.write_bytes(b"".join(line for line in lines if b"probe-patch init" not in line))
    outcome = run("apply", tmp_path)
    assert outcome.code == 3
    assert "left over from a probe-patch block whose markers are gone; delete by hand" in the_sentence(outcome)
