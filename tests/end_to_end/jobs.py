"""Jobs on example trees: what they are given, what they leave behind."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from probe_patch.demo.fixture import lay_out
from probe_patch.dump_format import PHASE_FOLDERS, Phase
from probe_patch.patcher import verbs
from probe_patch.patcher.discovery import find_targets
from probe_patch.patcher.request import Request
from tests.fixtures.results import Result
from tests.runtime.dumps import DumpOnDisk, read_dump

OFF: Mapping[str, str] = {"DUMP_ON": "0"}
UNSET: Mapping[str, str] = {}


@dataclass(frozen=True)
class Job:
    """One run of a tree without Ray.

    Attributes:
        flags: of ``train.py``.
        env: the environment's variables that matter to us; all others of ours are unset.
        rollouts: None for ``train.py``'s own loop, which ends at the first error; else the arguments that each rollout
            changes, and errors end nothing.
    """

    tree: Path
    flags: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    rollouts: Sequence[Mapping[str, object]] | None = None


@dataclass(frozen=True)
class Outcome:
    """What a job computed, what probe-patch said in its log, and, for ``rollouts``, the hooks left on the model."""

    result: Result
    said: tuple[str, ...]
    hooks: int | None


def run_jobs(jobs: Mapping[str, Job], scratch: Path) -> dict[str, Outcome]:
    """The outcome of each job; all run in one process, in order."""
    scratch.mkdir(parents=True, exist_ok=True)
    results = {name: scratch / f"{number}.json" for number, name in enumerate(jobs)}
    jobs_file = scratch / "jobs.json"
    described = [
        {
            "tree": str(job.tree),
            "flags": list(job.flags),
            "env": dict(job.env),
            "rollouts": None if job.rollouts is None else [dict(changes) for changes in job.rollouts],
            "result": str(results[name]),
        }
        for name, job in jobs.items()
    ]
    jobs_file.write_text(json.dumps(described))
    command = [sys.executable, str(Path(__file__).with_name("run_jobs.py")), str(jobs_file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return {name: _outcome(json.loads(path.read_text())) for name, path in results.items()}


def _outcome(raw: dict[str, Any]) -> Outcome:
    return Outcome(Result.model_validate(raw), tuple(raw["said"]), raw.get("hooks"))


def patched_tree(era: str, destination: Path, request: Request | None = None) -> Path:
    """The era's example tree, patched for all phases, or as ``request`` says."""
    tree = lay_out(era, destination)
    (result,) = verbs.apply(find_targets([tree]), request or Request(), dry_run=False)
    assert result.changed and result.error is None
    return tree


def dump_into(
    dump_path: Path, steps: Sequence[int] = (), level: str = "L0", data_mode: Sequence[str] = ("forward",)
) -> Path:
    """A config.json beside ``dump_path`` that dumps these steps, or all of them."""
    dump_path.parent.mkdir(parents=True, exist_ok=True)
    config = dump_path.with_suffix(".json")
    document = {"level": level, "dump_path": str(dump_path), "step": list(steps)}
    config.write_text(json.dumps(document | {"statistics": {"data_mode": list(data_mode)}}))
    return config


def dumps_in(dump_path: Path) -> list[str]:
    """The folders with a dump, ``{phase folder}/step{N}/rank{R}``, sorted."""
    return sorted(str(path.parent.relative_to(dump_path)) for path in dump_path.rglob("dump.json"))


def read_phase(dump_path: Path, phase: Phase, step: int, rank: int = 0) -> DumpOnDisk:
    return read_dump(dump_path / PHASE_FOLDERS[phase] / f"step{step}" / f"rank{rank}")


def parameter_norms(dump: DumpOnDisk, call: int = 0) -> dict[str, float]:
    """L2 norm of every parameter as it was in the ``call``-th forward, by module label and parameter name."""
    return {
        f"{entry.rpartition('.forward.')[0]}.{name}": tensor["Norm"]
        for entry, record in dump.data.items()
        if entry.endswith(f".forward.{call}")
        for name, tensor in record["parameters"].items()
    }
