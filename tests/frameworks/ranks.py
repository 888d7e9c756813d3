"""Programs of one or more ranks, each rank a process of its own, joined by gloo.

A program is a module of tests with ``def run(job: Job) -> Result``; ``launch`` gives what each rank's ``run`` returned.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import distributed as dist

PATIENCE_S = 240

Result: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """What one rank is told: who it is, how many there are, and a folder for all of them."""

    rank: int
    ranks: int
    scratch: str

    @property
    def folder(self) -> Path:
        return Path(self.scratch)


def launch(program: str, ranks: int, scratch: Path) -> list[Result]:
    """Run the module ``program`` and give each rank's result; an error of one rank ends the others."""
    jobs = [Job(rank, ranks, str(scratch)) for rank in range(ranks)]
    command = [sys.executable, "-W", "ignore", "-m", program]
    logs = [scratch / f"rank{job.rank}.log" for job in jobs]
    running = []
    try:
        for job, log in zip(jobs, logs, strict=True):
            with log.open("w") as said:
                process = subprocess.Popen(
                    [*command, json.dumps(asdict(job))],
                    env={**os.environ, "RANK": str(job.rank), "WORLD_SIZE": str(ranks), "HF_HUB_OFFLINE": "1"},
                    stdout=said,
                    stderr=said,
                )
            running.append(process)
        codes = [process.wait(PATIENCE_S) for process in running]
    finally:
        for process in running:
            process.kill()
            process.wait()
    assert codes == [0] * ranks, "\n".join(log.read_text() for log in logs)
    return [json.loads((scratch / f"rank{job.rank}.json").read_text()) for job in jobs]


def main(run: Callable[[Job], Result]) -> None:
    """What a program ends with. One thread, because the order of a threaded sum is not the same in every run."""
    job = Job(**json.loads(sys.argv[1]))
    torch.set_num_threads(1)
    if job.ranks > 1:
        rendezvous = f"file://{job.folder / 'rendezvous'}"
        patience = timedelta(seconds=PATIENCE_S)
        dist.init_process_group("gloo", init_method=rendezvous, rank=job.rank, world_size=job.ranks, timeout=patience)
    result = run(job)
    (job.folder / f"rank{job.rank}.json").write_text(json.dumps(result))
    if job.ranks > 1:
        dist.destroy_process_group()
