"""One pass over the values: what a program keeps per lane, and what becomes of it.

A program keeps, per lane: the highest and the lowest value; five totals and what their rounding lost (see ``adding``);
and four counts. NaN is left out of the extremes, and the sum of the middling squares tells whether there was one: no
infinity or sum of squares can make it NaN.
"""

import triton
import triton.language as tl

from probe_patch.runtime.stats.backends.triton.kernels.adding import (
    add_tile,
    mean_and_norm,
    sum_of_lanes,
    total_of_lanes,
)
from probe_patch.runtime.stats.backends.triton.kernels.reading import decode, load, magnitude, split

_LOWEST32 = tl.constexpr(-(2**31))
_HIGHEST32 = tl.constexpr(2**31 - 1)
_LOWEST64 = tl.constexpr(-(2**63))
_HIGHEST64 = tl.constexpr(2**63 - 1)


@triton.jit
def lowest(ORDER: tl.constexpr):
    """What every value of a dtype is at least: a scalar of it."""
    if ORDER == tl.int32:
        found = tl.full((), _LOWEST32, tl.int32)
    elif ORDER == tl.int64:
        found = tl.full((), _LOWEST64, tl.int64)
    else:
        found = tl.full((), float("-inf"), ORDER)
    return found


@triton.jit
def highest(ORDER: tl.constexpr):
    """What every value of a dtype is at most: a scalar of it."""
    if ORDER == tl.int32:
        found = tl.full((), _HIGHEST32, tl.int32)
    elif ORDER == tl.int64:
        found = tl.full((), _HIGHEST64, tl.int64)
    else:
        found = tl.full((), float("inf"), ORDER)
    return found


@triton.jit
def nothing_yet(offsets, ORDER: tl.constexpr, TOTAL: tl.constexpr):
    """The first of everything that a program keeps, in the shape of its tiles."""
    zero = tl.zeros(offsets.shape, TOTAL)
    none = tl.zeros(offsets.shape, tl.int32)
    high = tl.zeros(offsets.shape, ORDER) + lowest(ORDER)
    low = tl.zeros(offsets.shape, ORDER) + highest(ORDER)
    return high, low, zero, none


@triton.jit
def _in_order(words, CODE: tl.constexpr, ORDER: tl.constexpr):
    """Words of integers or booleans as signed integers in the same order."""
    if CODE == "bool":
        found = words != 0
    elif CODE == "uint64":
        found = words ^ _LOWEST64
    else:
        found = words
    return found.to(ORDER)


@triton.jit
def _count(found, keep, total, MASKED: tl.constexpr):
    if MASKED:
        found = found & keep
    return total + found.to(tl.int32)


@triton.jit
def fold_tile(
    pointer,
    offsets,
    keep,
    high,
    low,
    sum0,
    sum1,
    square0,
    square1,
    square2,
    nan,
    positive,
    negative,
    zero,
    CODE: tl.constexpr,
    ORDER: tl.constexpr,
    ADDED: tl.constexpr,
    SCALED: tl.constexpr,
    COUNTS: tl.constexpr,
    MASKED: tl.constexpr,
):
    """Read one tile, and add it to a program's extremes and counts and to the sums of a group.

    Args:
        keep: which of the offsets are elements; looked at where ``MASKED`` only.
        ORDER: what extremes are taken in: a float, or a signed integer.
        ADDED: the float that the sums of a group have.
    """
    words, more = load(pointer, offsets, keep, CODE, MASKED)
    infinity = float("inf")
    if ORDER == tl.float32 or ORDER == tl.float64:
        # In pairs, for the Triton 3.2 of NPUs.
        if (CODE == "complex32" or CODE == "complex64") or CODE == "complex128":
            real, imaginary = split(words, more, CODE, ORDER)
            value = magnitude(real, imaginary, SCALED)
            if COUNTS:
                unknown = (real != real) | (imaginary != imaginary)
                infinite = (tl.abs(real) == infinity) | (tl.abs(imaginary) == infinity)
                nan = _count(unknown, keep, nan, MASKED)
                positive = _count(infinite, keep, positive, MASKED)
                zero = _count((real == 0) & (imaginary == 0), keep, zero, MASKED)
        else:
            value = decode(words, CODE, ORDER)
            if COUNTS:
                nan = _count(value != value, keep, nan, MASKED)
                positive = _count(value == infinity, keep, positive, MASKED)
                negative = _count(value == -infinity, keep, negative, MASKED)
                zero = _count(value == 0, keep, zero, MASKED)
        if MASKED:
            high = tl.maximum(high, tl.where(keep, value, -infinity))
            low = tl.minimum(low, tl.where(keep, value, infinity))
        else:
            high = tl.maximum(high, value)
            low = tl.minimum(low, value)
        added = value.to(ADDED)
    else:
        ordered = _in_order(words, CODE, ORDER)
        if COUNTS:
            zero = _count(words == 0, keep, zero, MASKED)
        if MASKED:
            high = tl.maximum(high, tl.where(keep, ordered, lowest(ORDER)))
            low = tl.minimum(low, tl.where(keep, ordered, highest(ORDER)))
        else:
            high = tl.maximum(high, ordered)
            low = tl.minimum(low, ordered)
        added = decode(words, CODE, ADDED)
    if MASKED:
        added = tl.where(keep, added, 0.0)
    sum0, sum1, square0, square1, square2 = add_tile(added, sum0, sum1, square0, square1, square2, ADDED, SCALED)
    return high, low, sum0, sum1, square0, square1, square2, nan, positive, negative, zero


@triton.jit
def across_lanes(
    high,
    low,
    sum0,
    lost0,
    sum1,
    lost1,
    square0,
    lost2,
    square1,
    lost3,
    square2,
    lost4,
    nan,
    positive,
    negative,
    zero,
    ROW: tl.constexpr,
    COUNTS: tl.constexpr,
):
    """What a program keeps per lane, as one number each; sums in the row's dtype, counts as int64."""
    if len(high.shape) == 2:
        high = tl.max(high, 1)
        low = tl.min(low, 1)
    if COUNTS:
        nan_count = sum_of_lanes(nan.to(tl.int64))
        positive_count = sum_of_lanes(positive.to(tl.int64))
        negative_count = sum_of_lanes(negative.to(tl.int64))
        zero_count = sum_of_lanes(zero.to(tl.int64))
    else:
        nan_count = tl.zeros((), tl.int64)
        positive_count = nan_count
        negative_count = nan_count
        zero_count = nan_count
    return (
        tl.max(high, 0),
        tl.min(low, 0),
        total_of_lanes(sum0, lost0, ROW),
        total_of_lanes(sum1, lost1, ROW),
        total_of_lanes(square0, lost2, ROW),
        total_of_lanes(square1, lost3, ROW),
        total_of_lanes(square2, lost4, ROW),
        nan_count,
        positive_count,
        negative_count,
        zero_count,
    )


@triton.jit
def write_row(
    floats,
    integers,
    high,
    low,
    sum0,
    sum1,
    square0,
    square1,
    square2,
    nan,
    positive,
    negative,
    zero,
    n,
    weight,
    ORDER: tl.constexpr,
    ADDED: tl.constexpr,
    ROW: tl.constexpr,
    SCALED: tl.constexpr,
    COUNTS: tl.constexpr,
):
    """Write one row: see ``rows.Block``.

    Args:
        floats: where its floats begin.
        integers: where its integers begin.
        n: how many values were read.
        weight: how often each of them counts.
    """
    mean, norm = mean_and_norm(sum0, sum1, square0, square1, square2, n, weight, ADDED, ROW, SCALED)
    if ORDER == tl.float32 or ORDER == tl.float64:
        has_nan = square0 != square0
        tl.store(floats, tl.where(has_nan, square0, high.to(ROW)))
        tl.store(floats + 1, tl.where(has_nan, square0, low.to(ROW)))
    else:
        tl.store(integers, high.to(tl.int64))
        tl.store(integers + 1, low.to(tl.int64))
    tl.store(floats + 2, mean)
    tl.store(floats + 3, norm)
    if COUNTS:
        tl.store(integers + 2, nan * weight)
        tl.store(integers + 3, positive * weight)
        tl.store(integers + 4, negative * weight)
        tl.store(integers + 5, zero * weight)
