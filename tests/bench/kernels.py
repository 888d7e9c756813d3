"""What the four statistics of one tensor on the host cost, next to msProbe's operations and to a plain read.

Peers take turns, tensor by tensor, in one process with one torch thread; medians of wall time. msProbe's are the four
operations that its 26.2.0 runs per tensor, in the tensor's own dtype, and the four ``.item()`` of its flush (floats of
up to 32 bits; it gives integers no mean and no norm, and float64 neither, so there only max and min). A plain read is
torch's copy into memory that is there already: one read and one write. Ours is everything from
``StatisticsTable.add`` to the row, each tensor a batch of its own; and without the compiled library.
"""

import statistics
import time
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from probe_patch.runtime.problems import Problems
from probe_patch.runtime.stats.apart import ApartFromTheRun
from probe_patch.runtime.stats.backends.chunked import Chunked
from probe_patch.runtime.stats.backends.cpu import Compiled
from probe_patch.runtime.stats.backends.library import library
from probe_patch.runtime.stats.backends.registry import Backends, Found
from probe_patch.runtime.stats.kinds import kind_of
from probe_patch.runtime.stats.rows import DEVICES, ROWS_PER_BLOCK
from probe_patch.runtime.stats.table import StatisticsTable
from tests.bench.machine import machine

SIZES = (10**2, 10**3, 10**4, 10**5, 10**6, 10**7, 10**8)
DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64)
SECONDS = 1.5
FEWEST_ROUNDS = 3

Peer = Callable[[Tensor], object]

_MEASURED_IN_FULL = frozenset({torch.float32, torch.bfloat16, torch.float16})


class _Only(Backends):
    """One backend, whatever the device."""

    def __init__(self, backend: Compiled | Chunked) -> None:
        super().__init__()
        self._only = Found(backend, None)

    def on(self, device: torch.device, counts: bool) -> Found:
        return self._only


def ours(backend: Compiled | Chunked) -> Peer:
    """Rows are never read, and the table begins anew when its block is full."""
    problems = Problems(set())
    tables = [StatisticsTable(problems, backends=_Only(backend))]

    def measure(values: Tensor) -> None:
        kind = kind_of(values)
        assert kind is not None
        table = tables[0]
        row = table.add(values, kind)
        table.launch()
        if row == DEVICES * (ROWS_PER_BLOCK - 1):
            tables[0] = StatisticsTable(problems, backends=_Only(backend))

    return measure


def msprobe(values: Tensor) -> object:
    found = [values.max(), values.min()]
    if values.dtype in _MEASURED_IN_FULL:
        found += [values.mean(), torch.norm(values)]
    return [number.item() for number in found]


def plain_read() -> Peer:
    room: dict[tuple[int, torch.dtype], Tensor] = {}

    def read(values: Tensor) -> Tensor:
        key = values.numel(), values.dtype
        if key not in room:
            room.clear()
            room[key] = torch.empty_like(values)
        return room[key].copy_(values)

    return read


def medians(values: Tensor, peers: dict[str, Peer]) -> dict[str, float]:
    """Microseconds, by peer."""
    times: dict[str, list[float]] = {name: [] for name in peers}
    until = time.perf_counter() + SECONDS
    number = 0
    while number <= FEWEST_ROUNDS or time.perf_counter() < until:
        for name, peer in peers.items():
            began = time.perf_counter()
            peer(values)
            if number:  # the first round warms up
                times[name].append(time.perf_counter() - began)
        number += 1
    return {name: 1e6 * statistics.median(found) for name, found in times.items()}


def tensor_of(size: int, dtype: torch.dtype) -> Tensor:
    if dtype is torch.int64:
        return torch.randint(-1000, 1000, (size,))
    piece = torch.randn(min(size, 1 << 20)).to(dtype)
    return piece.repeat(-(-size // piece.numel()))[:size]


def shown(microseconds: float) -> str:
    return f"{microseconds:.1f} us" if microseconds < 1000 else f"{microseconds / 1000:.2f} ms"


def kernel_rows() -> Iterator[str]:
    """The table, line by line, as markdown."""
    torch.manual_seed(0)
    kernels = library()
    peers: dict[str, Peer] = {
        "compiled": ours(Compiled(kernels, False)),
        "torch": ours(Chunked(False)),
        "msProbe": msprobe,
        "read": plain_read(),
    }
    yield f"{machine()}; one thread, instruction set level {kernels.level}; medians of wall-clock time"
    yield ""
    yield "| dtype | elements | probe-patch | without its library | msProbe | copy | msProbe / probe-patch |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    with ApartFromTheRun():
        for dtype in DTYPES:
            for size in SIZES:
                found = medians(tensor_of(size, dtype), peers)
                cells = " | ".join(shown(value) for value in found.values())
                ratio = found["msProbe"] / found["compiled"]
                yield f"| {str(dtype).removeprefix('torch.')} | {size:.0e} | {cells} | {ratio:.1f} |"
