"""The numbers of a tensor by exact sums on the host: what every backend is held to, and shares no code with."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from probe_patch.runtime.stats.kinds import Kind, kind_of
from probe_patch.runtime.stats.rows import Counts, Summary

PROMISE = 1e-6


@dataclass(frozen=True)
class Expected:
    """Attributes:
    magnitude: the mean of |x|, which the mean's error is measured by.
    """

    summary: Summary
    counts: Counts
    magnitude: float


def expected_of(tensor: Tensor) -> Expected:
    kind = kind_of(tensor)
    whole = tensor.resolve_neg().resolve_conj().reshape(-1)
    if kind is Kind.BOOL:
        bits: list[bool] = whole.tolist()
        return Expected(Summary(any(bits), all(bits), None, None), Counts(0, 0, bits.count(False)), 0.0)
    if kind is Kind.COMPLEX:
        return _of_complex(whole.to(torch.complex128).tolist(), tensor.dim() == 0)
    if kind is Kind.FLOAT:
        wide: list[float] = (whole.float() if whole.element_size() == 1 else whole).double().tolist()
        infinite = sum(math.isinf(x) for x in wide)
        counts = Counts(sum(math.isnan(x) for x in wide), infinite, wide.count(0.0))
        return _of(wide, counts, tensor.dim() == 0)
    integers: list[int] = whole.tolist()
    return _of(integers, Counts(0, 0, integers.count(0)), tensor.dim() == 0)


def _of_complex(values: list[complex], is_scalar: bool) -> Expected:
    magnitudes = [math.hypot(x.real, x.imag) for x in values]
    nan = sum(math.isnan(x.real) or math.isnan(x.imag) for x in values)
    infinite = sum(math.isinf(x.real) or math.isinf(x.imag) for x in values)
    return _of(magnitudes, Counts(nan, infinite, values.count(0j)), is_scalar)


def _of(values: list[float] | list[int], counts: Counts, is_scalar: bool) -> Expected:
    if any(math.isnan(x) for x in values):
        return Expected(Summary(math.nan, math.nan, math.nan, math.nan), counts, math.nan)
    high, low = max(values), min(values)
    if math.isinf(high) or math.isinf(low):
        mean = math.nan if high == -low else high if math.isinf(high) else low
        norm = magnitude = math.inf
    else:
        # In units of a power of two near the largest: nothing overflows, and what vanishes is nothing beside it.
        exponent = math.frexp(float(max(abs(high), abs(low))))[1]
        relative = [math.ldexp(x, -exponent) for x in values]
        mean = _in_units(math.fsum(relative) / len(values), exponent)
        magnitude = _in_units(math.fsum(map(abs, relative)) / len(values), exponent)
        norm = _in_units(math.sqrt(math.fsum(x * x for x in relative)), exponent)
    return Expected(Summary(high, high, high, high) if is_scalar else Summary(high, low, mean, norm), counts, magnitude)


def _in_units(number: float, exponent: int) -> float:
    """Beyond float64, infinite."""
    try:
        return math.ldexp(number, exponent)
    except OverflowError:
        return math.copysign(math.inf, number)


def differences(found: Summary, counts: Counts, expected: Expected) -> list[str]:
    """In which numbers something differs by more than is promised."""
    wanted = expected.summary
    is_exact = [("max", found.maximum, wanted.maximum, PROMISE if math.isfinite(expected.magnitude) else 0.0)]
    is_exact.append(("min", found.minimum, wanted.minimum, is_exact[0][3]))
    wrong = [
        f"{name} is {one!r}, not {other!r}"
        for name, one, other, tolerance in is_exact
        if type(one) is not type(other) or not _is_near(one, other, tolerance * abs(other or 0))
    ]
    if not _is_near(found.mean, wanted.mean, PROMISE * expected.magnitude):
        wrong.append(f"mean is {found.mean!r}, not {wanted.mean!r}, where the mean magnitude is {expected.magnitude!r}")
    if not _is_near(found.norm, wanted.norm, PROMISE * abs(wanted.norm or 0.0)):
        wrong.append(f"norm is {found.norm!r}, not {wanted.norm!r}")
    if counts != expected.counts:
        wrong.append(f"counts are {counts}, not {expected.counts}")
    return wrong


def _is_near(one: float | None, other: float | None, tolerance: float) -> bool:
    if one is None or other is None or math.isnan(one) or math.isnan(other):
        return repr(one) == repr(other)
    # The least float64 for what lies below the normal ones.
    return one == other or abs(one - other) <= max(tolerance if math.isfinite(tolerance) else 0.0, 1e-322)
