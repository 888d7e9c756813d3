"""Words of eight bytes as whole numbers, the first byte the lowest."""

from typing import Final

WORD_BYTES: Final = 8

_BITS: Final = 64
ONES: Final = (1 << _BITS) - 1


def rotated(word: int, size: int) -> int:
    """The exclusive or of the words of bytes that come ``size`` bytes later: each byte moves to its new place."""
    turn = size % WORD_BYTES * WORD_BYTES
    return (word << turn | word >> _BITS - turn) & ONES


def folded(number: int, size: int) -> int:
    """The exclusive or of the words of a number of ``size`` bytes."""
    bits = size * 8
    while bits > _BITS:
        # The nearest whole words to a half.
        bits = (bits // 2 + _BITS - 1) // _BITS * _BITS
        number = number >> bits ^ number & (1 << bits) - 1
    return number
