"""The numbers of one tensor in plain torch: the definition that faster kernels are held to.

Everything stays on the tensor's device and is written into a row there; nothing waits for the device.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import torch
from torch import Tensor

from probe_patch.runtime.stats.kinds import Kind
from probe_patch.runtime.stats.rows import EXTREMES, SIGN_BIT, Block

# 32 MiB of float64 at a time: bounds the memory a reduction adds.
CHUNK_ELEMENTS: Final = 1 << 22

# Wide enough that a square overflows or vanishes in float64, and a sum overflows.
_WIDEST: Final = frozenset({torch.float64, torch.complex128})

# Makes a sum of any number of finite values finite.
_SMALLER: Final = 2.0**-64

_WITHOUT_FLOAT64: Final = frozenset({"npu", "mps"})


class Reference:
    """Plain torch, on any device."""

    name = "reference"
    shortcoming = None

    def __init__(self, device: torch.device, counts: bool) -> None:
        self.accumulator = torch.float32 if device.type in _WITHOUT_FLOAT64 else torch.float64
        self._counts = counts

    def measure(self, values: Sequence[Tensor], kinds: Sequence[Kind], block: Block, first: int) -> None:
        """See ``Backend.measure``."""
        for number, (tensor, kind) in enumerate(zip(values, kinds, strict=True), first):
            measure(tensor, kind, block.floats[number], block.integers[number])
            if self._counts:
                block.integers[number, EXTREMES:] = count(tensor, kind)


def make(device: torch.device, counts: bool) -> Reference:
    """It is there on every device."""
    return Reference(device, counts)


def measure(values: Tensor, kind: Kind, floats: Tensor, integers: Tensor) -> None:
    """Write the statistics of ``values`` into one row, but for the counts.

    Args:
        values: any shape with at least one element, any strides, no autograd.
        kind: ``kind_of(values)``.
        floats: [4], float64 or float32: see ``rows.Block``.
        integers: [6] int64, the first two of which are written.
    """
    if kind is Kind.BOOL:
        integers[:EXTREMES] = torch.stack((values.any(), values.all()))
    elif kind is Kind.FLOAT or kind is Kind.COMPLEX:
        _measure_floats(values, kind, floats)
    else:
        _measure_integers(values, kind, floats, integers)


def count(values: Tensor, kind: Kind) -> Tensor:
    """How many are NaN, +Inf, -Inf and zero, [4] int64; arguments as for ``measure``."""
    tallies = [_count_chunk(chunk, kind) for chunk in chunks(values)]
    return merged(tallies, lambda stacked: stacked.sum(0))


def _measure_floats(values: Tensor, kind: Kind, floats: Tensor) -> None:
    is_wide = values.dtype in _WIDEST or floats.dtype is torch.float32
    norm = _scaled_norm if is_wide else torch.linalg.vector_norm
    highs: list[Tensor] = []
    lows: list[Tensor] = []
    sums: list[Tensor] = []
    smaller: list[Tensor] = []
    norms: list[Tensor] = []
    for chunk in chunks(values):
        wide = widen(chunk, kind, floats.dtype)
        low, high = torch.aminmax(wide)
        lows.append(low)
        highs.append(high)
        sums.append(wide.sum())
        if is_wide:
            smaller.append((wide * _SMALLER).sum())
        norms.append(norm(wide))
    mean = _mean(sums, values.numel())
    if is_wide:
        mean = torch.where(mean.isfinite(), mean, _mean(smaller, values.numel()) / _SMALLER)
    row = (merged(highs, Tensor.amax), merged(lows, Tensor.amin), mean, merged(norms, norm))
    torch.stack(row, out=floats)


def _measure_integers(values: Tensor, kind: Kind, floats: Tensor, integers: Tensor) -> None:
    highs: list[Tensor] = []
    lows: list[Tensor] = []
    sums: list[Tensor] = []
    norms: list[Tensor] = []
    for chunk in chunks(values):
        low, high = torch.aminmax(as_signed(chunk, kind))
        lows.append(low)
        highs.append(high)
        wide = chunk.to(floats.dtype)
        sums.append(wide.sum())
        norms.append(torch.linalg.vector_norm(wide))
    integers[:EXTREMES] = torch.stack((merged(highs, Tensor.amax), merged(lows, Tensor.amin)))
    norm = merged(norms, torch.linalg.vector_norm)
    torch.stack((_mean(sums, values.numel()), norm), out=floats[2:])


def _count_chunk(chunk: Tensor, kind: Kind) -> Tensor:
    if kind is Kind.COMPLEX:
        # As they are: the magnitude of inf+nanj is inf. Half-precision ones have no such functions.
        parts = chunk.to(torch.complex64) if chunk.element_size() == 4 else chunk
        infinite = parts.isinf()
        found = (parts.isnan(), infinite, torch.zeros_like(infinite), parts == 0)
    elif kind is Kind.FLOAT:
        # Nor have eight-bit floats.
        known = chunk.to(torch.float32) if chunk.element_size() == 1 else chunk
        found = (known.isnan(), known.isposinf(), known.isneginf(), known == 0)
    else:
        # Every unsigned dtype has the bits of a signed one, and can be compared there on every device.
        signed = chunk.resolve_neg().view(_SIGNED[chunk.element_size()])
        never = torch.zeros_like(signed, dtype=torch.bool)
        found = (never, never, never, signed == 0)
    return torch.stack([mask.sum(dtype=torch.int64) for mask in found])


_SIGNED: Final = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def chunks(values: Tensor) -> Iterator[Tensor]:
    """Views of at most ``CHUNK_ELEMENTS`` elements: flattening would copy tensors with gaps or repeats in memory."""
    if values.is_contiguous():
        # Costs nothing here, and pieces without gaps are read faster.
        values = values.view(-1)
    if values.numel() <= CHUNK_ELEMENTS:
        yield values
        return
    size, dim = max((size, dim) for dim, size in enumerate(values.shape))
    for piece in torch.split(values, max(1, size * CHUNK_ELEMENTS // values.numel()), dim):
        yield from chunks(piece)


def merged(partials: list[Tensor], merge: Callable[[Tensor], Tensor]) -> Tensor:
    """One of all pieces from one per piece."""
    return partials[0] if len(partials) == 1 else merge(torch.stack(partials))


def widen(chunk: Tensor, kind: Kind, dtype: torch.dtype) -> Tensor:
    """Floats in this dtype; of complex values, the magnitudes."""
    if kind is Kind.COMPLEX:
        complex_dtype = torch.complex128 if dtype is torch.float64 else torch.complex64
        return chunk.to(complex_dtype).abs()
    # Eight-bit floats convert to float32 everywhere, to float64 not.
    return (chunk.to(torch.float32) if chunk.element_size() == 1 else chunk).to(dtype)


def as_signed(chunk: Tensor, kind: Kind) -> Tensor:
    """Integers in a dtype that can be ordered everywhere; uint64 less 2**63."""
    if kind is Kind.UNSIGNED:
        return chunk.to(torch.int64)
    if kind is Kind.UNSIGNED64:
        # Flipping the top bit maps the order of uint64 onto that of int64.
        return chunk.view(torch.int64) ^ -SIGN_BIT
    return chunk


def _scaled_norm(wide: Tensor) -> Tensor:
    """The L2 norm of values whose squares may be beyond the accumulator, in either direction."""
    low, high = torch.aminmax(wide)
    largest = torch.maximum(low.abs(), high.abs())
    # Zeros, infinities and NaN cannot be divided by; unscaled they give 0, infinity and NaN.
    scale = torch.where((largest > 0) & (largest < math.inf), largest, torch.ones_like(largest))
    norm: Tensor = torch.linalg.vector_norm(wide / scale)
    return norm * scale


def _mean(sums: list[Tensor], count: int) -> Tensor:
    return merged(sums, Tensor.sum) / count
