"""Arithmetic of CRC-32: polynomials over GF(2) modulo zlib's, as whole numbers of 32 bits whose top bit is x**0."""

from typing import Final

POLYNOMIAL: Final = 0xEDB88320
"""x**32 + x**26 + ... + 1 without its first term, in the bit order above."""

ONE: Final = 1 << 31

_X: Final = 1 << 30


def product(left: int, right: int) -> int:
    """``left * right``."""
    result = 0
    while left:
        if left & ONE:
            result ^= right
        left = left << 1 & 0xFFFFFFFF
        right = right >> 1 ^ (POLYNOMIAL if right & 1 else 0)
    return result


def power_of_x(exponent: int) -> int:
    """``x ** exponent``."""
    result, square = ONE, _X
    while exponent:
        if exponent & 1:
            result = product(result, square)
        square = product(square, square)
        exponent >>= 1
    return result


def powers(base: int, count: int) -> list[int]:
    """``base ** 0`` to ``base ** (count - 1)``."""
    found = [ONE]
    while len(found) < count:
        found.append(product(found[-1], base))
    return found[:count]


def byte_tables(factor: int) -> list[list[int]]:
    """Four tables of 256, for the bytes of a polynomial, the lowest first. The exclusive or of what they have for its
    bytes is its product with ``factor``."""
    tables = []
    for place in range(4):
        table = [0]
        for bit in range(8):
            of_bit = product(1 << 8 * place + bit, factor)
            table += [of_bit ^ smaller for smaller in table]
        tables.append(table)
    return tables


def joined(first: int, second: int, second_length: int) -> int:
    """The CRC-32 of bytes one behind the other from those of both parts; ``second_length`` in bytes."""
    return product(first, power_of_x(8 * second_length)) ^ second
