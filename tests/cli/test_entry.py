"""The program itself: help, version, module, and readers of its output that go away."""

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from probe_patch import __version__
from probe_patch.cli import main
from tests.cli.running import run, run_in_process
from tests.cli.trees import ORIGINAL, checkout

COMMANDS = ["apply", "revert", "check", "status", "config", "config init", "config check", "env", "demo"]


def test_help_names_every_command() -> None:
    outcome = run("--help")
    assert (outcome.code, outcome.err) == (0, "")
    listed = [line.split()[0] for line in outcome.out.partition("Commands:")[2].splitlines() if line.startswith("  ")]
    assert {command.split()[0] for command in COMMANDS} <= set(listed)
    assert "Exit codes: 0 done or as expected" in outcome.out


@pytest.mark.parametrize("option", ["--help", "-h"])
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, option: str) -> None:
    outcome = run(*command.split(), option)
    assert (outcome.code, outcome.err) == (0, "")
    usage, _, description = outcome.out.partition("\n\n")
    assert usage.startswith(f"Usage: main {command} ")
    assert description.lstrip()[0].isupper()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_explained(command: str) -> None:
    found: click.Command = main
    for name in command.split():
        assert isinstance(found, click.Group)
        found = found.commands[name]
    options = [parameter for parameter in found.params if isinstance(parameter, click.Option)]
    assert [option.name for option in options if not option.help] == []


def test_version() -> None:
    outcome = run("--version")
    assert (outcome.code, outcome.out) == (0, f"probe-patch, version {__version__}\n")


def test_as_a_module() -> None:
    outcome = run_in_process("--version")
    assert (outcome.code, outcome.out, outcome.err) == (0, f"probe-patch, version {__version__}\n", "")


@pytest.mark.parametrize("arguments", [("patch",), ("status", "nowhere"), ("apply", "--phases", "x")], ids=" ".join)
def test_exit_codes_reach_the_shell(arguments: tuple[str, ...], tmp_path: Path) -> None:
    outcome = run_in_process(*arguments, cwd=tmp_path)
    assert outcome.code == run(*arguments).code != 0
    assert outcome.out == ""


def test_the_command_imports_no_torch() -> None:
    code = "import sys, probe_patch.cli; print([name for name in ('torch', 'ray', 'slime') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def shell(script: str, *arguments: Path) -> subprocess.CompletedProcess[str]:
    """Run a bash script in which ``$0`` is the interpreter."""
    command = ["bash", "-c", script, sys.executable, *map(str, arguments)]
    answer = subprocess.run(command, capture_output=True, text=True)
    assert "Traceback" not in answer.stderr
    assert "Exception ignored" not in answer.stderr
    return answer


@pytest.mark.parametrize("arguments", [("--diff",), (), ("--format", "json")], ids=" ".join)
def test_a_reader_that_has_gone(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    checkout(tmp_path)
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "probe_patch", "apply", str(tmp_path), *arguments]
    answer = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert answer.returncode == 1
    assert all(line.startswith("note: ") for line in answer.stderr.splitlines()), answer.stderr


def test_the_first_line_of_a_diff(tmp_path: Path) -> None:
    checkout(tmp_path)
    answer = shell('"$0" -m probe_patch apply "$1" --diff | head -1', tmp_path)
    assert answer.stdout.startswith("--- ")
    assert answer.stdout.count("\n") == 1


def test_closed_stdout(tmp_path: Path) -> None:
    actor = checkout(tmp_path)
    assert shell('"$0" -m probe_patch apply "$1" >&-', tmp_path).returncode == 0
    assert actor.read_bytes() != ORIGINAL


def test_a_full_disk_behind_stdout(tmp_path: Path) -> None:
    actor = checkout(tmp_path)
    answer = shell('"$0" -m probe_patch revert "$1" > /dev/full', tmp_path)
    assert answer.returncode == 4
    assert answer.stderr == (
        "probe-patch: cannot print (No space left on device); probe-patch status tells what was done\n"
    )
    assert actor.read_bytes() == ORIGINAL
