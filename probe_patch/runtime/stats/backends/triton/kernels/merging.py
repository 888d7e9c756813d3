"""A row from the partial results of many programs."""

import triton
import triton.language as tl

from probe_patch.runtime.stats.backends.triton.kernels.folding import highest, lowest, write_row


@triton.jit(do_not_specialize=["programs", "n", "weight", "row"])
def merge_partials(
    partial_floats,
    partial_integers,
    floats,
    integers,
    programs: tl.int64,
    n: tl.int64,
    weight: tl.int64,
    row: tl.int64,
    ROW_FLOATS: tl.constexpr,
    ROW_INTEGERS: tl.constexpr,
    ORDER: tl.constexpr,
    ADDED: tl.constexpr,
    ROW: tl.constexpr,
    SCALED: tl.constexpr,
    COUNTS: tl.constexpr,
    PARTIALS: tl.constexpr,
):
    """A row from the partial results of as many programs; arguments as for ``measure_one``."""
    lanes = tl.arange(0, PARTIALS)
    keep = lanes < programs
    here = partial_floats + lanes
    counted = partial_integers + lanes
    if ORDER == tl.float32 or ORDER == tl.float64:
        high = tl.max(tl.load(here, mask=keep, other=float("-inf")), 0)
        low = tl.min(tl.load(here + PARTIALS, mask=keep, other=float("inf")), 0)
    else:
        high = tl.max(tl.where(keep, tl.load(counted, mask=keep, other=0), lowest(tl.int64)), 0)
        low = tl.min(tl.where(keep, tl.load(counted + PARTIALS, mask=keep, other=0), highest(tl.int64)), 0)
    sum0 = tl.sum(tl.load(here + 2 * PARTIALS, mask=keep, other=0.0), 0)
    square0 = tl.sum(tl.load(here + 4 * PARTIALS, mask=keep, other=0.0), 0)
    sum1 = sum0
    square1 = square0
    square2 = square0
    if SCALED:
        sum1 = tl.sum(tl.load(here + 3 * PARTIALS, mask=keep, other=0.0), 0)
        square1 = tl.sum(tl.load(here + 5 * PARTIALS, mask=keep, other=0.0), 0)
        square2 = tl.sum(tl.load(here + 6 * PARTIALS, mask=keep, other=0.0), 0)
    # Not written without counts.
    nan = n
    positive = n
    negative = n
    zero = n
    if COUNTS:
        nan = tl.sum(tl.load(counted + 2 * PARTIALS, mask=keep, other=0), 0)
        positive = tl.sum(tl.load(counted + 3 * PARTIALS, mask=keep, other=0), 0)
        negative = tl.sum(tl.load(counted + 4 * PARTIALS, mask=keep, other=0), 0)
        zero = tl.sum(tl.load(counted + 5 * PARTIALS, mask=keep, other=0), 0)
    write_row(
        floats + row * ROW_FLOATS,
        integers + row * ROW_INTEGERS,
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
        ORDER,
        ADDED,
        ROW,
        SCALED,
        COUNTS,
    )
