"""Maximum, minimum, mean and L2 norm of one tensor in plain torch: the definition that faster kernels are held to.

Everything stays on the tensor's device and is written into a row there; nothing waits for the device.
"""

import math
from collections.abc import Callable, Iterator
from typing import Final

import torch
from torch import Tensor

from probe_patch.runtime.stats.kinds import Kind

# 32 MiB of float64 at a time: bounds the memory a reduction adds.
CHUNK_ELEMENTS: Final = 1 << 22

SIGN_BIT: Final = 1 << 63

# Wide enough that a square overflows or vanishes in float64.
WIDEST: Final = frozenset({torch.float64, torch.complex128})

_WITHOUT_FLOAT64: Final = frozenset({"npu", "mps"})


def accumulator(device: torch.device) -> torch.dtype:
    """The widest float the device can add in: float64, or float32 where there is none."""
    return torch.float32 if device.type in _WITHOUT_FLOAT64 else torch.float64


def measure(values: Tensor, kind: Kind, floats: Tensor, integers: Tensor) -> None:
    """Write the statistics of ``values`` into one row.

    Args:
        values: any shape with at least one element, any strides, no autograd.
        kind: ``kind_of(values)``.
        floats: [4] of ``accumulator(device)``: max, min, mean, L2 norm; complex values count by their magnitude.
            Integers leave max and min alone, booleans all four.
        integers: [2] int64: exact max and min of integers, of uint64 less 2**63; any and all of booleans.
    """
    if kind is Kind.BOOL:
        integers.copy_(torch.stack((values.any(), values.all())))
        return
    if kind is Kind.FLOAT or kind is Kind.COMPLEX:
        _measure_floats(values, kind, floats)
    else:
        _measure_integers(values, kind, floats, integers)


def _measure_floats(values: Tensor, kind: Kind, floats: Tensor) -> None:
    norm = scaled_norm if values.dtype in WIDEST else torch.linalg.vector_norm
    highs: list[Tensor] = []
    lows: list[Tensor] = []
    sums: list[Tensor] = []
    norms: list[Tensor] = []
    for chunk in chunks(values):
        wide = widen(chunk, kind, floats.dtype)
        low, high = torch.aminmax(wide)
        lows.append(low)
        highs.append(high)
        sums.append(wide.sum())
        norms.append(norm(wide))
    row = (merged(highs, Tensor.amax), merged(lows, Tensor.amin), _mean(sums, values.numel()), merged(norms, norm))
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
    integers.copy_(torch.stack((merged(highs, Tensor.amax), merged(lows, Tensor.amin))))
    norm = merged(norms, torch.linalg.vector_norm)
    torch.stack((_mean(sums, values.numel()), norm), out=floats[2:])


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


def scaled_norm(wide: Tensor) -> Tensor:
    """The L2 norm of values whose squares may be beyond the accumulator, in either direction."""
    low, high = torch.aminmax(wide)
    largest = torch.maximum(low.abs(), high.abs())
    # Zeros, infinities and NaN cannot be divided by; unscaled they give 0, infinity and NaN.
    scale = torch.where((largest > 0) & (largest < math.inf), largest, torch.ones_like(largest))
    norm: Tensor = torch.linalg.vector_norm(wide / scale)
    return norm * scale


def merged(partials: list[Tensor], merge: Callable[[Tensor], Tensor]) -> Tensor:
    """One number of all pieces from one number per piece."""
    return partials[0] if len(partials) == 1 else merge(torch.stack(partials))


def _mean(sums: list[Tensor], count: int) -> Tensor:
    return merged(sums, Tensor.sum) / count
