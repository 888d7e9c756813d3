"""A backend in the interpreter, what it finds, and an independent definition of what it should."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from probe_patch.runtime.stats.backends.triton.backend import TritonBackend, Tuning
from probe_patch.runtime.stats.backends.triton.queues import HostQueue
from probe_patch.runtime.stats.backends.triton.variants import Arithmetic
from probe_patch.runtime.stats.kinds import Kind, kind_of
from probe_patch.runtime.stats.rows import Block

HOST = torch.device("cpu")

# Small enough that a few hundred elements are several groups, a tail, several programs, and too many for one.
TUNING = Tuning(programs=3, tile=32, group=2, small=200)

FLOATS = {Kind.FLOAT, Kind.COMPLEX}
UNSIGNED64 = 2**63


class Found(NamedTuple):
    """A row: max, min, mean, L2 norm, and counts of NaN, +Inf, -Inf and zeros."""

    maximum: float
    minimum: float
    mean: float
    norm: float
    counts: tuple[int, ...]


def backend(arithmetic: Arithmetic = Arithmetic.FLOAT64, counts: bool = True) -> TritonBackend:
    return TritonBackend(HOST, counts, arithmetic, False, HostQueue(), TUNING)


def measured(tensors: Sequence[Tensor], arithmetic: Arithmetic = Arithmetic.FLOAT64, first: int = 7) -> list[Found]:
    """The rows of tensors measured at once."""
    backends = backend(arithmetic)
    block = Block(HOST, backends.accumulator)
    kinds = [kind_of(tensor) for tensor in tensors]
    known = [kind for kind in kinds if kind is not None]
    assert len(known) == len(kinds)
    backends.measure(tensors, known, block, first)
    return [_row(block, number, kind) for number, kind in enumerate(known, first)]


def _row(block: Block, number: int, kind: Kind) -> Found:
    maximum, minimum, mean, norm = block.floats[number].tolist()
    high, low, *counts = block.integers[number].tolist()
    if kind not in FLOATS:
        offset = UNSIGNED64 if kind is Kind.UNSIGNED64 else 0
        maximum, minimum = high + offset, low + offset
    return Found(maximum, minimum, mean, norm, tuple(counts))


def expected(tensor: Tensor) -> Found:
    """The same by numpy in float64, after torch has read the elements one by one; integers exactly."""
    values = np.array(_elements(tensor))
    if not tensor.is_complex():
        values = values.astype(np.float64)
    with np.errstate(all="ignore"):
        if tensor.dtype.is_complex:
            nan, infinite = np.isnan(values), np.isinf(values)
            counts = (nan.sum(), infinite.sum(), 0, (values == 0).sum())
            sizes = np.hypot(values.real, values.imag)
        elif tensor.dtype.is_floating_point:
            sizes = values
            counts = (np.isnan(values).sum(), np.isposinf(values).sum(), np.isneginf(values).sum(), (values == 0).sum())
        else:
            sizes = values
            counts = (0, 0, 0, (values == 0).sum())
        largest = np.abs(sizes).max()
        scale = largest if 0 < largest < math.inf else 1.0
        mean = (sizes / len(sizes)).sum()
        norm = scale * np.sqrt(((sizes / scale) ** 2).sum())
    high, low = (
        (sizes.max().item(), sizes.min().item())
        if tensor.is_floating_point() or tensor.is_complex()
        else _exact(tensor)
    )
    return Found(high, low, mean.item(), norm.item(), tuple(int(one) for one in counts))


def _exact(tensor: Tensor) -> tuple[int, int]:
    numbers = [int(one) for one in _elements(tensor)]
    return max(numbers), min(numbers)


def _elements(tensor: Tensor) -> list[Any]:
    if tensor.dtype.is_complex:
        return [complex(one) for one in tensor.to(torch.complex128).flatten().tolist()]
    if tensor.dtype.is_floating_point and tensor.element_size() == 1:
        tensor = tensor.to(torch.float32)
    elements: list[Any] = tensor.flatten().tolist()
    return elements


def same(found: Found, wanted: Found, mean_size: float, tolerance: float = 1e-6) -> bool:
    """Whether two rows agree as promised; ``mean_size`` is the mean of |x|."""
    return (
        _equal(found.maximum, wanted.maximum, tolerance)
        and _equal(found.minimum, wanted.minimum, tolerance)
        and _equal(found.norm, wanted.norm, tolerance)
        and (_equal(found.mean, wanted.mean, tolerance) or abs(found.mean - wanted.mean) <= tolerance * mean_size)
        and found.counts == wanted.counts
    )


def _equal(found: float, wanted: float, tolerance: float) -> bool:
    if isinstance(found, int):
        return found == wanted
    if math.isnan(wanted) or math.isinf(wanted):
        return str(found) == str(wanted)
    return abs(found - wanted) <= tolerance * abs(wanted)
