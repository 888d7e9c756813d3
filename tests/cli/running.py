"""The command line as its user runs it: in this process, or in one of its own where that matters."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from probe_patch.cli import main


@dataclass(frozen=True)
class Outcome:
    """What a command leaves: its exit code, and what it printed."""

    code: int
    out: str
    err: str


def run(*arguments: str | Path) -> Outcome:
    """Run a command here. A traceback fails the test."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Outcome(result.exit_code, result.stdout_bytes.decode("utf-8", "surrogateescape"), result.stderr)


def run_in_process(*arguments: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Outcome:
    """Run a command as ``python -m probe_patch``."""
    answer = subprocess.run(
        [sys.executable, "-m", "probe_patch", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        errors="surrogateescape",
    )
    assert "Traceback" not in answer.stderr, answer.stderr
    return Outcome(answer.returncode, answer.stdout, answer.stderr)


def the_sentence(outcome: Outcome) -> str:
    """The one line on stderr that says what was wrong; nothing else may be printed."""
    assert outcome.out == ""
    lines = [line for line in outcome.err.splitlines() if line != "probe-patch: nothing was written"]
    assert len(lines) == 1, outcome.err
    assert lines[0].startswith("probe-patch: ")
    return lines[0].removeprefix("probe-patch: ")
