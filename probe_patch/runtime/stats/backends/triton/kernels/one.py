"""A tensor of any size and layout, by as many programs as there are.

Integers are never specialised on, so that what was compiled once serves every size; what is known of alignment comes
as ``EVEN``.
"""

import triton
import triton.language as tl

from probe_patch.runtime.stats.backends.triton.kernels.folding import write_row
from probe_patch.runtime.stats.backends.triton.kernels.passing import pass_over

_EVEN = tl.constexpr(16)


@triton.jit(
    do_not_specialize=["n", "weight", "rows", "columns", "size1", "size2", "stride0", "stride1", "stride2", "stride3"]
)
def measure_one(
    pointer,
    floats,
    integers,
    n: tl.int64,
    weight: tl.int64,
    row: tl.int64,
    rows: tl.int64,
    columns: tl.int64,
    size1: tl.int64,
    size2: tl.int64,
    stride0: tl.int64,
    stride1: tl.int64,
    stride2: tl.int64,
    stride3: tl.int64,
    ROW_FLOATS: tl.constexpr,
    ROW_INTEGERS: tl.constexpr,
    CODE: tl.constexpr,
    ORDER: tl.constexpr,
    ADDED: tl.constexpr,
    TOTAL: tl.constexpr,
    ROW: tl.constexpr,
    SCALED: tl.constexpr,
    COUNTS: tl.constexpr,
    DENSE: tl.constexpr,
    INDEX: tl.constexpr,
    HEIGHT: tl.constexpr,
    WIDTH: tl.constexpr,
    GROUP: tl.constexpr,
    EVEN: tl.constexpr,
    UNIT: tl.constexpr,
    ALONE: tl.constexpr,
    PARTIALS: tl.constexpr,
):
    """One tensor, by as many programs as there are.

    Args:
        pointer: its first element, as words of the dtype that ``CODE`` is decoded from.
        floats: where the floats of the block's first row begin, ``ROW_FLOATS`` of them apart, if one program does it
            ``ALONE``; else of partial results, to be merged, [7, PARTIALS].
        integers: likewise the integers, ``ROW_INTEGERS`` apart, or [6, PARTIALS].
        n: how many elements are read, each of which counts ``weight`` times.
        row: the number of its row.
        rows, columns, size1, size2, stride0 to stride3: see ``pass_over``, if not ``DENSE``.
        EVEN: whether strides and columns are multiples of 16 elements.
        UNIT: whether stride0 is 1.
    """
    program = tl.program_id(0)
    programs = tl.num_programs(0)
    size1 = size1.to(INDEX)
    size2 = size2.to(INDEX)
    if EVEN:
        # A hint would not last to where the mask is made of it; the same number, made like this, does.
        columns = columns // _EVEN * _EVEN
    high, low, sum0, sum1, square0, square1, square2, nan, positive, negative, zero = pass_over(
        pointer,
        n,
        program,
        programs,
        rows,
        columns,
        size1,
        size2,
        stride0,
        stride1,
        stride2,
        stride3,
        CODE,
        ORDER,
        ADDED,
        TOTAL,
        ROW,
        SCALED,
        COUNTS,
        DENSE,
        INDEX,
        HEIGHT,
        WIDTH,
        GROUP,
        EVEN,
        UNIT,
    )
    if ALONE:
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
    else:
        if ORDER == tl.float32 or ORDER == tl.float64:
            tl.store(floats + program, high.to(ROW))
            tl.store(floats + PARTIALS + program, low.to(ROW))
        else:
            tl.store(integers + program, high.to(tl.int64))
            tl.store(integers + PARTIALS + program, low.to(tl.int64))
        tl.store(floats + 2 * PARTIALS + program, sum0)
        tl.store(floats + 4 * PARTIALS + program, square0)
        if SCALED:
            tl.store(floats + 3 * PARTIALS + program, sum1)
            tl.store(floats + 5 * PARTIALS + program, square1)
            tl.store(floats + 6 * PARTIALS + program, square2)
        if COUNTS:
            tl.store(integers + 2 * PARTIALS + program, nan)
            tl.store(integers + 3 * PARTIALS + program, positive)
            tl.store(integers + 4 * PARTIALS + program, negative)
            tl.store(integers + 5 * PARTIALS + program, zero)
