"""Maximum, minimum, mean and L2 norm of one tensor in plain torch: the definition that faster kernels are held to.

Everything stays on the tensor's device and is written into a row there; nothing waits for the device.
"""

from collections.abc import Iterator
from typing import Final

import torch
from torch import Tensor

from probe_patch.runtime.stats.kinds import Kind

# 32 MiB of float64 at a time: bounds the memory a reduction adds.
CHUNK_ELEMENTS: Final = 1 << 22

SIGN_BIT: Final = 1 << 63

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
    flat = values.reshape(-1)
    if kind is Kind.FLOAT or kind is Kind.COMPLEX:
        _measure_floats(flat, kind, floats)
        return
    _measure_extremes(_as_signed(flat, kind), integers)
    sums = [_sum_and_norm(chunk.to(floats.dtype)) for chunk in _chunks(flat)]
    torch.stack(_mean_and_norm(sums, flat.numel()), out=floats[2:])


def _measure_floats(flat: Tensor, kind: Kind, floats: Tensor) -> None:
    highs: list[Tensor] = []
    lows: list[Tensor] = []
    sums: list[tuple[Tensor, Tensor]] = []
    for chunk in _chunks(flat):
        wide = _widen(chunk, kind, floats.dtype)
        low, high = torch.aminmax(wide)
        lows.append(low)
        highs.append(high)
        sums.append(_sum_and_norm(wide))
    torch.stack((_highest(highs), _lowest(lows), *_mean_and_norm(sums, flat.numel())), out=floats)


def _measure_extremes(flat: Tensor, integers: Tensor) -> None:
    low, high = torch.aminmax(flat)
    integers.copy_(torch.stack((high, low)))


def _chunks(flat: Tensor) -> Iterator[Tensor]:
    if flat.numel() <= CHUNK_ELEMENTS:
        yield flat
    else:
        yield from torch.split(flat, CHUNK_ELEMENTS)


def _widen(chunk: Tensor, kind: Kind, dtype: torch.dtype) -> Tensor:
    if kind is Kind.COMPLEX:
        complex_dtype = torch.complex128 if dtype is torch.float64 else torch.complex64
        return chunk.to(complex_dtype).abs()
    # Eight-bit floats convert to float32 everywhere, to float64 not.
    return (chunk.to(torch.float32) if chunk.element_size() == 1 else chunk).to(dtype)


def _as_signed(flat: Tensor, kind: Kind) -> Tensor:
    if kind is Kind.UNSIGNED:
        return flat.to(torch.int64)
    if kind is Kind.UNSIGNED64:
        # Flipping the top bit maps the order of uint64 onto that of int64.
        return flat.view(torch.int64) ^ -SIGN_BIT
    return flat


def _sum_and_norm(wide: Tensor) -> tuple[Tensor, Tensor]:
    return wide.sum(), torch.linalg.vector_norm(wide)


def _highest(partials: list[Tensor]) -> Tensor:
    return partials[0] if len(partials) == 1 else torch.stack(partials).amax()


def _lowest(partials: list[Tensor]) -> Tensor:
    return partials[0] if len(partials) == 1 else torch.stack(partials).amin()


def _mean_and_norm(partials: list[tuple[Tensor, Tensor]], count: int) -> tuple[Tensor, Tensor]:
    if len(partials) == 1:
        total, norm = partials[0]
    else:
        total = torch.stack([partial[0] for partial in partials]).sum()
        norm = torch.linalg.vector_norm(torch.stack([partial[1] for partial in partials]))
    return total / count, norm
