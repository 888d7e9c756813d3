"""Which SGLang runs, how probe-patch gets into it, and the processes it runs in."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from tests.needs import needs
from tests.real_sglang.report import Checkpoints, Report

ROOT = Path(__file__).parents[2]
ENVIRONMENT = ROOT / ".venv-sglang"
PYTHON = ENVIRONMENT / "bin" / "python"
STAND_INS = Path(__file__).parent / "stand_ins"
PATIENCE = 280.0
"""Seconds for a process to end by itself, on a cold disk."""


@dataclass(frozen=True)
class Setup:
    """A release, and whether its source is patched or our plugin is loaded by it."""

    version: str
    through: Literal["patch", "plugin"]

    def __str__(self) -> str:
        return f"{self.version}-{self.through}"

    def lay_out(self, folder: Path) -> Path:
        """A tree to run from: a copy, where it is going to be patched, else where pip put it."""
        installed = ENVIRONMENT / "sglang" / self.version
        needs(installed.exists(), "make venv-sglang installs SGLang")
        return installed if self.through == "plugin" else shutil.copytree(installed, folder / "tree")


@dataclass(frozen=True)
class Driven:
    """What a process of the driver left: its report, what it logged, and the folder with the dumps of each scenario."""

    report: Report
    log: str
    folder: Path

    def dump(self, scenario: str) -> Path:
        return self.folder / scenario / "dump"


def environment(tree: Path, extra: Mapping[str, str]) -> dict[str, str]:
    """For a process that imports SGLang from ``tree``.

    What the tests' own environment says of a dump is left out. Nothing is compiled: not every machine has a compiler.
    """
    inherited = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return {
        **inherited,
        "PYTHONPATH": os.pathsep.join(map(str, (tree, STAND_INS, ROOT))),
        "TORCHDYNAMO_DISABLE": "1",
        "HF_HUB_OFFLINE": "1",
        "SGLANG_USE_CPU_ENGINE": "1",
        "OMP_NUM_THREADS": "1",
        **extra,
    }


def write_checkpoints(folder: Path) -> Checkpoints:
    needs(PYTHON.exists(), "make venv-sglang installs SGLang")
    made = Checkpoints(folder / "first", folder / "second")
    program = [str(PYTHON), "-m", "tests.real_sglang.driver.checkpoint", str(made.first), str(made.second)]
    subprocess.run(program, cwd=ROOT, check=True, timeout=PATIENCE)
    return made


def drive(
    tree: Path, folder: Path, checkpoints: Checkpoints, scenarios: Sequence[str], extra: Mapping[str, str]
) -> Driven:
    """Run scenarios of the driver in one process of their own."""
    folder.mkdir()
    report = folder / "report.json"
    folders = (str(checkpoints.first), str(checkpoints.second))
    program = [str(PYTHON), "-m", "tests.real_sglang.driver", str(report), *folders, *scenarios]
    done = subprocess.run(
        program,
        cwd=ROOT,
        env=environment(tree, extra),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stdout
    return Driven(TypeAdapter(Report).validate_json(report.read_bytes()), done.stdout, folder)


def probe_patch(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The command line, in the tests' own environment."""
    program = [sys.executable, "-m", "probe_patch", *map(str, arguments)]
    return subprocess.run(program, capture_output=True, text=True, check=True, timeout=PATIENCE)


def hashes(tree: Path) -> Mapping[str, str]:
    """The SHA-256 of every file of a tree, without what Python compiled."""
    files = (path for path in tree.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(tree)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
