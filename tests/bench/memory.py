"""What a recorded entry takes of the host's memory until the recording stops."""

import tempfile
import tracemalloc
from pathlib import Path

import torch
from torch import nn

from tests.bench.peers import Mode, recording

ENTRIES = 20_000


def memory_per_entry() -> int:
    """Bytes per entry that Python and the rows hold, over many forwards of one module."""
    with tempfile.TemporaryDirectory(prefix="probe-patch-bench-") as folder:
        debugger = recording("probe-patch", Mode("L0"), Path(folder) / "dump")
        model, x = nn.Sequential(nn.Identity()), torch.ones(4)
        debugger.start(model)
        try:
            model(x)
            tracemalloc.start()
            before = tracemalloc.get_traced_memory()[0]
            for _ in range(ENTRIES // 2):
                model(x)
            return (tracemalloc.get_traced_memory()[0] - before) // ENTRIES
        finally:
            tracemalloc.stop()
            debugger.end()
