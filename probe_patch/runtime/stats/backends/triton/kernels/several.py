"""Several small tensors with one launch."""

import triton
import triton.language as tl

from probe_patch.runtime.stats.backends.triton.kernels.folding import write_row
from probe_patch.runtime.stats.backends.triton.kernels.passing import pass_over

_EVEN = tl.constexpr(16)


@triton.jit(
    do_not_specialize=[
        "address0",
        "place0",
        "address1",
        "place1",
        "address2",
        "place2",
        "address3",
        "place3",
        "address4",
        "place4",
        "address5",
        "place5",
        "address6",
        "place6",
        "address7",
        "place7",
        "address8",
        "place8",
        "address9",
        "place9",
        "address10",
        "place10",
        "address11",
        "place11",
        "address12",
        "place12",
        "address13",
        "place13",
        "address14",
        "place14",
        "address15",
        "place15",
    ]
)
def measure_several(
    floats,
    integers,
    address0: tl.int64,
    place0: tl.int64,
    address1: tl.int64,
    place1: tl.int64,
    address2: tl.int64,
    place2: tl.int64,
    address3: tl.int64,
    place3: tl.int64,
    address4: tl.int64,
    place4: tl.int64,
    address5: tl.int64,
    place5: tl.int64,
    address6: tl.int64,
    place6: tl.int64,
    address7: tl.int64,
    place7: tl.int64,
    address8: tl.int64,
    place8: tl.int64,
    address9: tl.int64,
    place9: tl.int64,
    address10: tl.int64,
    place10: tl.int64,
    address11: tl.int64,
    place11: tl.int64,
    address12: tl.int64,
    place12: tl.int64,
    address13: tl.int64,
    place13: tl.int64,
    address14: tl.int64,
    place14: tl.int64,
    address15: tl.int64,
    place15: tl.int64,
    WORDS: tl.constexpr,
    ROW_FLOATS: tl.constexpr,
    ROW_INTEGERS: tl.constexpr,
    CODE: tl.constexpr,
    ORDER: tl.constexpr,
    ADDED: tl.constexpr,
    TOTAL: tl.constexpr,
    ROW: tl.constexpr,
    SCALED: tl.constexpr,
    COUNTS: tl.constexpr,
    WIDTH: tl.constexpr,
    GROUP: tl.constexpr,
    EVEN: tl.constexpr,
):
    """Up to sixteen small dense tensors of one dtype, each by one program.

    Where they lie comes as plain arguments, which the driver copies when it is called: a table in device memory would
    have to be filled by a copy of its own, kept until the kernel has run, and would change under a captured graph.

    Args:
        floats: where the floats of the block's first row begin; ``ROW_FLOATS`` of them apart.
        integers: likewise the integers; ``ROW_INTEGERS`` apart.
        address0 to address15: where each begins, in bytes.
        place0 to place15: its elements, with the number of its row in the upper 32 bits.
        WORDS: the dtype of the words that ``CODE`` is decoded from.
        EVEN: whether all begin at a multiple of 16 bytes.
    """
    number = tl.program_id(0)
    address = address0
    place = place0
    address = tl.where(number == 1, address1, address)
    place = tl.where(number == 1, place1, place)
    address = tl.where(number == 2, address2, address)
    place = tl.where(number == 2, place2, place)
    address = tl.where(number == 3, address3, address)
    place = tl.where(number == 3, place3, place)
    address = tl.where(number == 4, address4, address)
    place = tl.where(number == 4, place4, place)
    address = tl.where(number == 5, address5, address)
    place = tl.where(number == 5, place5, place)
    address = tl.where(number == 6, address6, address)
    place = tl.where(number == 6, place6, place)
    address = tl.where(number == 7, address7, address)
    place = tl.where(number == 7, place7, place)
    address = tl.where(number == 8, address8, address)
    place = tl.where(number == 8, place8, place)
    address = tl.where(number == 9, address9, address)
    place = tl.where(number == 9, place9, place)
    address = tl.where(number == 10, address10, address)
    place = tl.where(number == 10, place10, place)
    address = tl.where(number == 11, address11, address)
    place = tl.where(number == 11, place11, place)
    address = tl.where(number == 12, address12, address)
    place = tl.where(number == 12, place12, place)
    address = tl.where(number == 13, address13, address)
    place = tl.where(number == 13, place13, place)
    address = tl.where(number == 14, address14, address)
    place = tl.where(number == 14, place14, place)
    address = tl.where(number == 15, address15, address)
    place = tl.where(number == 15, place15, place)
    pointer = address.to(tl.int64).to(tl.pointer_type(WORDS))
    if EVEN:
        pointer = tl.multiple_of(pointer, _EVEN)
    # The interpreter takes small numbers for 32 bits.
    place = place.to(tl.int64)
    n = place & 0xFFFFFFFF
    row = place >> 32
    one = n - n + 1
    high, low, sum0, sum1, square0, square1, square2, nan, positive, negative, zero = pass_over(
        pointer,
        n,
        0,
        1,
        one,
        one,
        one,
        one,
        one,
        one,
        one,
        one,
        CODE,
        ORDER,
        ADDED,
        TOTAL,
        ROW,
        SCALED,
        COUNTS,
        True,
        tl.int32,
        1,
        WIDTH,
        GROUP,
        True,
        True,
    )
    floats += row * ROW_FLOATS
    integers += row * ROW_INTEGERS
    write_row(
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
        one,
        ORDER,
        ADDED,
        ROW,
        SCALED,
        COUNTS,
    )
