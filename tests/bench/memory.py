"""What recording takes of the host's memory until it stops."""

import tempfile
import tracemalloc
from pathlib import Path
from typing import NamedTuple

import torch
from torch import nn

from tests.bench.peers import Mode, recording

ENTRIES = 60_000


class Memory(NamedTuple):
    """What Python and the rows hold at most.

    Attributes:
        per_entry: bytes.
        besides: MiB, however many entries there are.
    """

    per_entry: int
    besides: int


def memory_of_a_recording() -> Memory:
    """Over many forwards of one module."""
    with tempfile.TemporaryDirectory(prefix="probe-patch-bench-") as folder:
        debugger = recording("probe-patch", Mode("L0"), Path(folder) / "dump")
        model, x = nn.Sequential(nn.Identity()), torch.ones(4)

        def peak_over(entries: int) -> int:
            tracemalloc.reset_peak()
            for _ in range(entries // 2):
                model(x)
            return tracemalloc.get_traced_memory()[1]

        debugger.start(model)
        try:
            model(x)
            tracemalloc.start()
            first, second = peak_over(ENTRIES), peak_over(ENTRIES)
        finally:
            tracemalloc.stop()
            debugger.end()
    per_entry = (second - first) // ENTRIES
    return Memory(per_entry, (first - ENTRIES * per_entry) >> 20)
