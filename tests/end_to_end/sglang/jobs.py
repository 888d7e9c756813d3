"""Jobs on SGLang trees: what they are given, what they leave behind."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from probe_patch.patcher import verbs
from probe_patch.patcher.discovery import find_targets
from probe_patch.patcher.request import Request
from tests.fixtures.sglang.runs import Plan, Served
from tests.fixtures.sglang.trees import lay_out_sglang
from tests.runtime.dumps import DumpOnDisk, read_dump


@dataclass(frozen=True)
class Job:
    """One run of a tree; of our environment variables, only those in ``env`` are set."""

    tree: Path
    plan: Plan
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What was computed, and what probe-patch said in its log."""

    served: Served
    said: tuple[str, ...]

    def warned(self, *words: str) -> bool:
        """Whether one sentence has all these words."""
        return any(all(word in sentence for word in words) for sentence in self.said)


def run_jobs(jobs: Mapping[str, Job], scratch: Path) -> dict[str, Outcome]:
    """The outcome of each job; all run in one process, in order."""
    scratch.mkdir(parents=True, exist_ok=True)
    results = {name: scratch / f"{number}.json" for number, name in enumerate(jobs)}
    described = [
        {
            "tree": str(job.tree),
            "plan": job.plan.document(),
            "env": dict(job.env),
            "result": str(results[name]),
        }
        for name, job in jobs.items()
    ]
    jobs_file = scratch / "jobs.json"
    jobs_file.write_text(json.dumps(described))
    command = [sys.executable, str(Path(__file__).with_name("run_jobs.py")), str(jobs_file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return {name: _outcome(json.loads(path.read_text())) for name, path in results.items()}


def _outcome(raw: dict[str, Any]) -> Outcome:
    return Outcome(Served.model_validate(raw["served"]), tuple(raw["said"]))


def patched_sglang(era: str, destination: Path, request: Request | None = None) -> Path:
    """The era's tree, patched, for ``request`` if there is one."""
    tree = lay_out_sglang(era, destination)
    (result,) = verbs.apply(find_targets([tree]), request or Request(), dry_run=False)
    assert result.changed and result.error is None
    return tree


def dumping(dump_path: Path, rollout: Mapping[str, object] | None = None, **config: object) -> dict[str, str]:
    """The environment of a run that dumps into ``dump_path``, with this section ``rollout`` and these other keys."""
    dump_path.parent.mkdir(parents=True, exist_ok=True)
    file = dump_path.with_suffix(".json")
    document = {"level": "L0", "dump_path": str(dump_path), "rollout": rollout or {}, **config}
    file.write_text(json.dumps(document))
    return {"DUMP_ON": "1", "PROBE_PATCH_ROLLOUT_CONFIG": str(file)}


def forwards_in(dump_path: Path, folder: str = "rollout", rank: int = 0) -> Iterator[DumpOnDisk]:
    """The dumps of one rank, in order of their steps."""
    steps = sorted((dump_path / folder).glob(f"step*/rank{rank}/dump.json"), key=_step)
    return (read_dump(path.parent) for path in steps)


def _step(dump_file: Path) -> int:
    return int(dump_file.parents[1].name.removeprefix("step"))


def modes_in(dump_path: Path, folder: str = "rollout") -> list[tuple[int, str, int]]:
    """(step, mode, tokens) of each dump of rank 0."""
    metas = (dump.meta for dump in forwards_in(dump_path, folder))
    return [(meta["step"], meta["forward"]["mode"], meta["forward"]["tokens"]) for meta in metas]
