"""The loop over a tensor's tiles, for the two ways it may lie in memory."""

import triton
import triton.language as tl

from probe_patch.runtime.stats.backends.triton.kernels.adding import add_group
from probe_patch.runtime.stats.backends.triton.kernels.folding import across_lanes, fold_tile, nothing_yet

_EVEN = tl.constexpr(16)


@triton.jit
def pass_over(
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
):
    """One program's share of a tensor, as what ``across_lanes`` makes of it.

    Dense: n elements side by side in memory, read in groups of tiles of ``WIDTH``. Groups are read without a mask, so
    that one instruction loads 16 bytes, and their loads do not wait for each other; what is left after the last group
    is read tile by tile, with one.

    Otherwise: rows times columns, column j of a row at ``j * stride0`` from its first, rows numbered along up to three
    dimensions (of size1, size2 and any size, the first the quickest). A tile is HEIGHT rows by WIDTH columns.

    Args:
        INDEX: an integer wide enough for the number of a row.
        EVEN: whether each row and its length are a multiple of 16 elements.
        UNIT: whether stride0 is 1.
    """
    if DENSE:
        lanes = tl.arange(0, WIDTH)
        tiles = tl.cdiv(n, WIDTH)
        groups = n // (WIDTH * GROUP)
    else:
        lanes = tl.zeros((HEIGHT, WIDTH), tl.int32)
        tiles = tl.cdiv(rows, HEIGHT) * tl.cdiv(columns, WIDTH)
        groups = tl.cdiv(tiles, GROUP)
    high, low, none, count = nothing_yet(lanes, ORDER, TOTAL)
    sum0 = none
    lost0 = none
    sum1 = none
    lost1 = none
    square0 = none
    lost2 = none
    square1 = none
    lost3 = none
    square2 = none
    lost4 = none
    nan = count
    positive = count
    negative = count
    zero = count
    for group in range(program, groups, programs):
        (
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
        ) = fold_group(
            pointer,
            n,
            group * GROUP,
            tiles,
            rows,
            columns,
            size1,
            size2,
            stride0,
            stride1,
            stride2,
            stride3,
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
            CODE,
            ORDER,
            ADDED,
            TOTAL,
            SCALED,
            COUNTS,
            DENSE,
            INDEX,
            HEIGHT,
            WIDTH,
            GROUP,
            EVEN,
            UNIT,
            not DENSE,
        )
    if DENSE:
        for tile in range(groups * GROUP + program, tiles, programs):
            (
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
            ) = fold_group(
                pointer,
                n,
                tile,
                tiles,
                rows,
                columns,
                size1,
                size2,
                stride0,
                stride1,
                stride2,
                stride3,
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
                CODE,
                ORDER,
                ADDED,
                TOTAL,
                SCALED,
                COUNTS,
                DENSE,
                INDEX,
                HEIGHT,
                WIDTH,
                1,
                EVEN,
                UNIT,
                True,
            )
    return across_lanes(
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
        ROW,
        COUNTS,
    )


@triton.jit
def fold_group(
    pointer,
    n,
    first,
    tiles,
    rows,
    columns,
    size1,
    size2,
    stride0,
    stride1,
    stride2,
    stride3,
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
    CODE: tl.constexpr,
    ORDER: tl.constexpr,
    ADDED: tl.constexpr,
    TOTAL: tl.constexpr,
    SCALED: tl.constexpr,
    COUNTS: tl.constexpr,
    DENSE: tl.constexpr,
    INDEX: tl.constexpr,
    HEIGHT: tl.constexpr,
    WIDTH: tl.constexpr,
    GROUP: tl.constexpr,
    EVEN: tl.constexpr,
    UNIT: tl.constexpr,
    MASKED: tl.constexpr,
):
    """Read the tiles from ``first`` on, and add them to what a program keeps."""
    # Of complex128, what a pointer points to is one of two parts.
    PARTS: tl.constexpr = 2 if CODE == "complex128" else 1
    added0 = tl.zeros(high.shape, ADDED)
    added1 = added0
    added2 = added0
    added3 = added0
    added4 = added0
    for number in tl.static_range(GROUP):
        tile = first + number
        if DENSE:
            start = pointer + tile.to(tl.int64) * WIDTH * PARTS
            offsets = tl.arange(0, WIDTH)
            keep = offsets < n - tile.to(tl.int64) * WIDTH
        else:
            start = pointer
            column_tiles = tl.cdiv(columns, WIDTH)
            row = (tile // column_tiles).to(INDEX) * HEIGHT + tl.arange(0, HEIGHT)
            column = (tile % column_tiles).to(tl.int64) * WIDTH + tl.arange(0, WIDTH)
            above = row // size1
            place = (row % size1).to(tl.int64) * stride1
            place += (above % size2).to(tl.int64) * stride2
            place += (above // size2).to(tl.int64) * stride3
            if EVEN:
                place = tl.multiple_of(place, _EVEN)
            if UNIT:
                offsets = tl.expand_dims(place, 1) + tl.expand_dims(column, 0)
            else:
                offsets = tl.expand_dims(place, 1) + tl.expand_dims(column * stride0, 0)
            keep = tl.expand_dims(row < rows, 1) & tl.expand_dims(column < columns, 0)
        high, low, added0, added1, added2, added3, added4, nan, positive, negative, zero = fold_tile(
            start,
            offsets,
            keep,
            high,
            low,
            added0,
            added1,
            added2,
            added3,
            added4,
            nan,
            positive,
            negative,
            zero,
            CODE,
            ORDER,
            ADDED,
            SCALED,
            COUNTS,
            MASKED,
        )
    sum0, lost0 = add_group(sum0, lost0, added0.to(TOTAL), TOTAL)
    sum1, lost1 = add_group(sum1, lost1, added1.to(TOTAL), TOTAL)
    square0, lost2 = add_group(square0, lost2, added2.to(TOTAL), TOTAL)
    square1, lost3 = add_group(square1, lost3, added3.to(TOTAL), TOTAL)
    square2, lost4 = add_group(square2, lost4, added4.to(TOTAL), TOTAL)
    return (
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
    )
