"""Runs on each of two ranks: communicates while it is recorded, and writes down what was recorded.

python two_ranks.py FOLDER RANK
"""

import json
import sys
from datetime import timedelta
from pathlib import Path

import torch
from torch import distributed as dist

from tests.runtime.functions.recording import recorded


def work() -> None:
    rank = dist.get_rank()
    x = torch.full((2,), rank + 1.0)
    parts = [torch.zeros(2), torch.zeros(2)]
    dist.all_gather(parts, x)
    dist.reduce(tensor=x, dst=0)
    if rank == 0:
        dist.isend(x, 1).wait()  # type: ignore[union-attr]
    else:
        dist.irecv(x, src=0).wait()  # type: ignore[union-attr]
    other = torch.zeros(3)
    batch = [
        dist.P2POp(dist.isend, torch.full((3,), 5.0 + rank), 1 - rank),
        dist.P2POp(dist.irecv, other, 1 - rank),
    ]
    first, second = dist.batch_isend_irecv(batch)
    second.wait()
    first.wait()
    lists = [[0.0], [0.0]]
    dist.all_gather_object(lists, [float(rank)])


def main(folder: str, rank: str) -> None:
    rendezvous = f"file://{folder}/rendezvous"
    dist.init_process_group("gloo", init_method=rendezvous, rank=int(rank), world_size=2, timeout=timedelta(seconds=60))
    dump = recorded(work)
    problems = [problem.message for problem in dump.problems]
    Path(folder, f"{rank}.json").write_text(json.dumps({"data": dump.data, "problems": problems}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
