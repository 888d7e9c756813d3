"""Statistics on Ascend NPUs: the Triton kernels where triton-ascend is installed, else torch's own operators.

Both add in float32, as float64 is emulated there. What is in a private format never gets here: see ``kinds``.
"""

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Final

import torch
from torch import Tensor

from probe_patch.errors import BackendUnavailable
from probe_patch.runtime.stats.backends import Backend
from probe_patch.runtime.stats.backends.reference import as_signed, chunks, count, widen
from probe_patch.runtime.stats.kinds import Kind
from probe_patch.runtime.stats.rows import EXTREMES, Block

# However an operator adds up so few values, rounding costs little.
_ADDED_AT_ONCE: Final = 32

# Makes a sum of any number of finite values finite.
_SMALLER: Final = 2.0**-64


def make(device: torch.device, counts: bool) -> Backend:
    """
    Raises:
        BackendUnavailable: it is no NPU.
    """
    if device.type != "npu":
        raise BackendUnavailable(f"it is for NPUs, which {device} is not")
    return _by_triton(device, counts) if _has_triton_for_npus() else NpuOperators(counts)


def _has_triton_for_npus() -> bool:
    """Whether what is imported as triton is triton-ascend, or another that compiles for NPUs."""
    try:
        return "ascend" in import_module("triton.backends").backends
    except ImportError:
        return False


def _by_triton(device: torch.device, counts: bool) -> Backend:
    triton = import_module("triton")
    backend = import_module("probe_patch.runtime.stats.backends.triton.backend")
    arithmetic = import_module("probe_patch.runtime.stats.backends.triton.variants").Arithmetic
    # More programs than cores would only wait for each other.
    cores = triton.runtime.driver.active.utils.get_device_properties(device.index)["num_vectorcore"]
    # None share a launch: numbers that become pointers are nothing for an NPU's compiler.
    tuning = backend.Tuning(programs=cores, small=0)
    made: Backend = backend.TritonBackend(device, counts, arithmetic.FLOAT32, False, NpuQueue(device), tuning)
    return made


class NpuQueue:
    """Where an NPU's work is queued now; see ``triton.queues.Queue``."""

    def __init__(self, device: torch.device) -> None:
        self._npu = torch.get_device_module(device)
        self._device = device

    def selected(self) -> AbstractContextManager[object]:
        """A block in which this is the current device."""
        block: AbstractContextManager[object] = self._npu.device(self._device)
        return block

    def current(self) -> int:
        """The number of the current stream."""
        return int(self._npu.current_stream(self._device).npu_stream)

    def is_captured(self) -> bool:
        """See ``triton.queues.Queue``. Nothing is measured while it is: see ``kinds.is_readable``."""
        return False


class NpuOperators:
    """torch's operators on the device, in float32.

    Sums are built up 32 values at a time, level by level: 31 * 2**-24 of the mean's magnitudes, or of the norm, is then
    the most that rounding costs a level, and a hundredth of that is usual. What does not hold: float64 and complex128
    are rounded to float32 first; what is beyond 3.4e38, be it a value or a norm, is infinite; and mean and norm of what
    is below 1.2e-38 depend on whether the device keeps such numbers.
    """

    name = "npu"
    shortcoming = None
    accumulator = torch.float32

    def __init__(self, counts: bool) -> None:
        self._counts = counts

    def measure(self, values: Sequence[Tensor], kinds: Sequence[Kind], block: Block, first: int) -> None:
        """See ``Backend.measure``."""
        for row, (tensor, kind) in enumerate(zip(values, kinds, strict=True), first):
            integers = block.integers[row]
            if kind is Kind.BOOL:
                integers[:EXTREMES] = torch.stack((tensor.any(), tensor.all()))
            else:
                block.floats[row] = _floats(tensor, kind)
                if kind is not Kind.FLOAT and kind is not Kind.COMPLEX:
                    integers[:EXTREMES] = _integer_extremes(tensor, kind)
            if self._counts:
                integers[EXTREMES:] = count(tensor, kind)


def _floats(values: Tensor, kind: Kind) -> Tensor:
    """Max, min, mean and L2 norm, [4] float32."""
    # One copy of every chunk, which all numbers are taken of: [chunks, 6].
    found = torch.stack([_of_chunk(widen(chunk, kind, torch.float32).reshape(-1)) for chunk in chunks(values)])
    highs, lows, nans, *added = found.unbind(1)
    total, smaller = (_sum(column) / values.numel() for column in added[:2])
    nan = torch.full_like(total, math.nan)
    has_nan = nans.amax() > 0
    return torch.stack(
        (
            torch.where(has_nan, nan, highs.amax()),
            torch.where(has_nan, nan, lows.amin()),
            torch.where(total.isfinite(), total, smaller / _SMALLER),
            _norm(added[2]),
        )
    )


def _of_chunk(wide: Tensor) -> Tensor:
    """Of [n] float32: max, min, whether it holds NaN, sum, sum of the values made smaller, L2 norm."""
    # Not every operator of every version lets NaN through.
    has_nan = wide.isnan().any().float()
    return torch.stack((wide.amax(), wide.amin(), has_nan, _sum(wide), _sum(wide * _SMALLER), _norm(wide)))


def _norm(wide: Tensor) -> Tensor:
    """Of [n] float32 whose squares may be beyond float32."""
    largest = wide.abs().amax()
    # Zeros, infinities and NaN cannot be divided by; unscaled they give 0, infinity and NaN.
    scale = torch.where((largest > 0) & (largest < math.inf), largest, torch.ones_like(largest))
    return _sum((wide / scale).square()).sqrt() * scale


def _sum(wide: Tensor) -> Tensor:
    """Of [n] float32."""
    while wide.numel() > 1:
        rows = wide.numel() // _ADDED_AT_ONCE
        whole = wide[: rows * _ADDED_AT_ONCE].view(rows, _ADDED_AT_ONCE).sum(1)
        rest = wide[rows * _ADDED_AT_ONCE :]
        wide = torch.cat((whole, rest.sum(0, keepdim=True))) if rest.numel() else whole
    return wide[0]


def _integer_extremes(values: Tensor, kind: Kind) -> Tensor:
    """Max and min, [2] int64."""
    signed = [as_signed(chunk, kind) for chunk in chunks(values)]
    high = torch.stack([chunk.amax() for chunk in signed]).amax()
    low = torch.stack([chunk.amin() for chunk in signed]).amin()
    return torch.stack((high, low)).to(torch.int64)
