"""``--diff`` writes nothing, and what it prints makes the very change that the command would make."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from probe_patch.cli.diff import diff_label
from tests.cli.running import run
from tests.cli.trees import ORIGINAL, checkout, contents
from tests.needs import needs

CRLF = ORIGINAL.replace(b"\n", b"\r\n")
SOURCES = {
    "plain": ORIGINAL,
    "no final newline": ORIGINAL.rstrip(b"\n"),
    "crlf": CRLF,
    "crlf, no final newline": CRLF.rstrip(b"\r\n"),
    "mixed newlines": ORIGINAL.replace(b"\n", b"\r\n", 20),
    "bom": b"\xef\xbb\xbf" + ORIGINAL,
    "latin-1": b"# coding: latin-1\n# \xe9\n" + ORIGINAL,
    "form feed": ORIGINAL.replace(b"\n\nclass", b"\n\x0c\nclass"),
}
TOOLS = {
    "git": ["git", "apply", "-"],
    "git, in a repository": ["git", "apply", "--index", "-"],
    "patch": ["patch", "-p0", "--quiet", "--no-backup-if-mismatch"],
}


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("verb", ["apply", "revert"])
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_git_and_patch_do_what_the_command_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: bytes, verb: str, tool: str
) -> None:
    needs(shutil.which(TOOLS[tool][0]) is not None, f"{TOOLS[tool][0]} is not installed")
    monkeypatch.chdir(tmp_path)
    checkout(tmp_path / "tree", source)
    if verb == "revert":
        run("apply", "tree")
    make_the_change_with(TOOLS[tool], verb, tmp_path, "tree")


@pytest.mark.parametrize("tool", ["git", "patch"])
@pytest.mark.parametrize(
    "name", ["a b", 'quote"d', "back\\slash", "new\nline", "tab\there", "ü雪", "\udcff", "a", "-p"]
)
def test_names_that_diffs_find_hard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, tool: str) -> None:
    needs(shutil.which(TOOLS[tool][0]) is not None, f"{TOOLS[tool][0]} is not installed")
    monkeypatch.chdir(tmp_path)
    checkout(tmp_path / name)
    make_the_change_with(TOOLS[tool], "apply", tmp_path, f"./{name}")


def make_the_change_with(tool: list[str], verb: str, folder: Path, tree: str) -> None:
    """The diff writes nothing; the tool, given it, leaves the folder as the command does."""
    before = contents(folder)
    diff = run(verb, tree, "--diff")
    assert diff.code == 0
    assert contents(folder) == before
    in_git = "--index" in tool
    if in_git:
        for command in (["init", "--quiet"], ["-c", "core.autocrlf=false", "add", "tree"]):
            subprocess.run(["git", *command], cwd=folder, check=True)
    changed = subprocess.run(tool, cwd=folder, input=diff.out.encode("utf-8", "surrogateescape"), capture_output=True)
    assert changed.returncode == 0, changed.stderr
    if in_git:
        shutil.rmtree(folder / ".git")
    by_tool = contents(folder)
    assert by_tool != before
    restore(folder, before)
    assert run(verb, tree).code == 0
    assert contents(folder) == by_tool


def restore(folder: Path, before: dict[str, tuple[int, bytes]]) -> None:
    for name, (mode, content) in before.items():
        if (folder / name).is_file():
            (folder / name).write_bytes(content)
            (folder / name).chmod(mode & 0o7777)
    assert contents(folder) == before


def test_a_diff_through_a_link_is_of_the_file_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    checkout(tmp_path / "real")
    (tmp_path / "link").symlink_to("real")
    needs(shutil.which("git") is not None, "git is not installed")
    make_the_change_with(TOOLS["git"], "apply", tmp_path, "link")


def test_nothing_to_change_is_an_empty_diff(tmp_path: Path) -> None:
    checkout(tmp_path)
    run("apply", tmp_path)
    assert run("apply", tmp_path, "--diff").out == ""


def test_a_read_only_file_can_be_looked_at(tmp_path: Path) -> None:
    checkout(tmp_path).chmod(0o444)
    diff = run("apply", tmp_path, "--diff")
    assert diff.code == 0
    assert "+# >>> probe-patch prelude" in diff.out


def test_one_refused_file_means_no_diff_at_all(tmp_path: Path) -> None:
    """Piped into git apply, half of it would patch what the command itself leaves alone."""
    checkout(tmp_path / "good")
    checkout(tmp_path / "bad", b"x = (\n")
    outcome = run("apply", tmp_path / "good", tmp_path / "bad", "--diff")
    assert (outcome.code, outcome.out) == (3, "")
    assert "does not parse as Python" in outcome.err


def test_json_of_a_diff_says_what_would_change(tmp_path: Path) -> None:
    actor = checkout(tmp_path)
    document = json.loads(run("apply", tmp_path, "--diff", "--format", "json").out)
    assert document["dry_run"] is True
    assert [(file["changed"], file["would_change"]) for file in document["files"]] == [(False, True)]
    assert actor.read_bytes() == ORIGINAL


def test_a_file_outside_the_folder_keeps_its_absolute_name() -> None:
    assert diff_label(Path("/b/c.py"), Path("/a")) == b"/b/c.py\t"
    assert diff_label(Path("/a/c.py"), Path("/a")) == b"./c.py\t"
