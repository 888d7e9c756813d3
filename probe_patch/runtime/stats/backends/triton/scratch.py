"""Device memory for the partial results of a large tensor, between the two kernels that write and merge them."""

from threading import Lock
from typing import Final

import torch
from torch import Tensor

from probe_patch.runtime.stats.backends.triton.queues import Queue

PARTIALS: Final = 1024
"""How many programs can write partial results of one tensor."""

_FLOATS: Final = 7
_INTEGERS: Final = 6


class Scratch:
    """A piece of memory.

    Attributes:
        floats: [7, PARTIALS] of the row's dtype.
        integers: [6, PARTIALS] int64.
        lock: held from the first use of it to the last.
    """

    def __init__(self, device: torch.device, row: torch.dtype) -> None:
        self.floats: Tensor = torch.empty(_FLOATS, PARTIALS, dtype=row, device=device)
        self.integers: Tensor = torch.empty(_INTEGERS, PARTIALS, dtype=torch.int64, device=device)
        self.lock = Lock()


class Scratches:
    """One for each stream, made when it is first needed: within a stream one tensor is merged before the next begins.

    A graph that is captured gets its own for every tensor, out of the graph's memory: it may be replayed on any stream,
    while the stream it was captured on does something else.
    """

    def __init__(self, device: torch.device, row: torch.dtype, queue: Queue) -> None:
        self._device = device
        self._row = row
        self._queue = queue
        self._of_streams: dict[int, Scratch] = {}

    def now(self) -> Scratch:
        """What is free for the next tensor on the current stream."""
        if self._queue.is_captured():
            return Scratch(self._device, self._row)
        stream = self._queue.current()
        scratch = self._of_streams.get(stream)
        if scratch is None:
            scratch = self._of_streams[stream] = Scratch(self._device, self._row)
        return scratch
