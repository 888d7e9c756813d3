"""Sums that keep to the promised accuracy, in whichever float the device is quick with.

A program adds the values of a few tiles (a group), then the group to its totals. float32 totals carry what their
rounding lost, so that only the few additions inside a group and the final ones across lanes round.

Where squares could overflow or vanish, values are sorted by size into three sums of squares, the large ones shrunk and
the small ones grown first, as Blue's algorithm does (ACM TOMS 4, 1978); sums have one more for the large.
"""

import triton
import triton.language as tl

# Above the first, values are large and multiplied by the second; below the third, small and multiplied by the fourth.
_LARGE32 = tl.constexpr(2.0**40)
_SHRINK32 = tl.constexpr(2.0**-84)
_SMALL32 = tl.constexpr(2.0**-50)
_GROW32 = tl.constexpr(2.0**90)
_LARGE64 = tl.constexpr(2.0**400)
_SHRINK64 = tl.constexpr(2.0**-600)
_SMALL64 = tl.constexpr(2.0**-400)
_GROW64 = tl.constexpr(2.0**700)


@triton.jit
def add_tile(x, sum0, sum1, square0, square1, square2, DTYPE: tl.constexpr, SCALED: tl.constexpr):
    """Add a tile of values of this dtype to the sums of a group: middling and large; middling, large and small."""
    if SCALED:
        size = tl.abs(x)
        if DTYPE == tl.float64:
            large = size > _LARGE64
            small = size < _SMALL64
            shrunk = tl.where(large, x * _SHRINK64, 0.0)
            grown = tl.where(small, x * _GROW64, 0.0)
        else:
            large = size > _LARGE32
            small = size < _SMALL32
            shrunk = tl.where(large, x * _SHRINK32, 0.0)
            grown = tl.where(small, x * _GROW32, 0.0)
        middling = tl.where(large | small, 0.0, x)
        sum0 += tl.where(large, 0.0, x)
        sum1 += shrunk
        square0 += middling * middling
        square1 += shrunk * shrunk
        square2 += grown * grown
    else:
        sum0 += x
        square0 += x * x
    return sum0, sum1, square0, square1, square2


@triton.jit
def add_group(total, lost, group, DTYPE: tl.constexpr):
    """A total of this dtype and what its rounding lost (Knuth's two-sum), with a group added."""
    new = total + group
    if DTYPE == tl.float32:
        added = new - total
        lost += (total - (new - added)) + (group - added)
    return new, lost


@triton.jit
def sum_of_lanes(x):
    """Of a tile with one dimension or two."""
    if len(x.shape) == 2:
        x = tl.sum(x, 1)
    return tl.sum(x, 0)


@triton.jit
def total_of_lanes(total, lost, ROW: tl.constexpr):
    """One number of a program's totals, in the dtype of the row."""
    # An infinite total has lost a NaN.
    lost = tl.where(tl.abs(total) < float("inf"), lost, 0.0)
    return sum_of_lanes(total.to(ROW)) + sum_of_lanes(lost.to(ROW))


@triton.jit
def mean_and_norm(
    sum0, sum1, square0, square1, square2, n, weight, DTYPE: tl.constexpr, ROW: tl.constexpr, SCALED: tl.constexpr
):
    """Of n values, each of which counts ``weight`` times, from sums in the row's dtype of values of ``DTYPE``."""
    count = n.to(ROW)
    mean = sum0 / count
    norm = tl.sqrt(square0)
    if SCALED:
        down: tl.constexpr = _SHRINK64 if DTYPE == tl.float64 else _SHRINK32
        up: tl.constexpr = _GROW64 if DTYPE == tl.float64 else _GROW32
        mean += sum1 / count / down
        # What is far smaller than the rest changes nothing, and could not be scaled like it.
        small = tl.sqrt(square2) / up
        middling = tl.sqrt(square0 + square2 / up / up)
        large = tl.sqrt(square1 + square0 * down * down) / down
        # Not `square0 > 0`, which is false of NaN too.
        norm = tl.where(square1 > 0, large, tl.where(square0 == 0, small, middling))
        norm = tl.where(square0 != square0, square0, norm)
    return mean, norm * tl.sqrt(weight.to(ROW))
