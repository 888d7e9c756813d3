"""The row that one tensor's numbers are written into, on its device, and what it says once it is on the host."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import torch
from torch import Tensor

from probe_patch.runtime.stats.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Collection

ROWS_PER_BLOCK: Final = 4096

FLOAT_COLUMNS: Final = 4
"""Max, min, mean and L2 norm. They share the first four words, seen through a view in the accumulator's dtype."""

EXTREMES: Final = 2
"""Exact max and min of integers, of uint64 less 2**63; of booleans, any and all."""

COUNTS: Final = 4
"""Of NaN, +Inf, -Inf and zeros; of complex values, NaN or infinite in either part, all infinite ones as +Inf."""

WORDS: Final = FLOAT_COLUMNS + EXTREMES + COUNTS
WORD_BYTES: Final = 8
ROW_BYTES: Final = WORDS * WORD_BYTES

_INTEGERS_AT_ONCE: Final = 64
"""Rows: reading one by itself takes as long as ten more."""

SIGN_BIT: Final = 1 << 63

DEVICES: Final = 256
"""More than one process has: a row's number is that of the row on its device times this, plus that of the device."""


class Summary(NamedTuple):
    """What dump.json says about a tensor's numbers; None where a kind has no such number."""

    maximum: float | bool | None
    minimum: float | bool | None
    mean: float | None
    norm: float | None


class Counts(NamedTuple):
    """How many of a tensor's values are NaN, infinite and zero; of complex values, NaN or infinite in either part."""

    nan: int
    infinite: int
    zero: int


class Block:
    """``ROWS_PER_BLOCK`` rows on one device, not yet written.

    Complex values count by their magnitude. Integers and booleans leave the float max and min alone, booleans mean and
    norm too, floats the integer extremes. Mean and norm rather than sum and sum of squares, because these may overflow
    where the former do not.

    Args:
        accumulator: the widest float that the device can add in, float64 or float32.

    Attributes:
        words: [ROWS_PER_BLOCK, WORDS] int64, contiguous.
        floats: the [ROWS_PER_BLOCK, FLOAT_COLUMNS] view of it in the accumulator's dtype.
        integers: the [ROWS_PER_BLOCK, EXTREMES + COUNTS] view of it.
        address: where it begins, for kernels that are called with pointers.
    """

    def __init__(self, device: torch.device, accumulator: torch.dtype) -> None:
        self.words = torch.empty(ROWS_PER_BLOCK, WORDS, dtype=torch.int64, device=device)
        self.floats = self.words.view(accumulator)[:, :FLOAT_COLUMNS]
        self.integers = self.words[:, FLOAT_COLUMNS:]
        self.address = self.words.data_ptr()


class Integers:
    """The integers of each row, which are made numbers only where one is asked for: few tensors have any.

    Args:
        words: [n, integers of a row] int64, on the host.
    """

    def __init__(self, words: Tensor) -> None:
        self._words = words
        self._numbers: dict[int, list[list[int]]] = {}

    def of(self, row: int) -> list[int]:
        part, place = divmod(row, _INTEGERS_AT_ONCE)
        numbers = self._numbers.get(part)
        if numbers is None:
            first = part * _INTEGERS_AT_ONCE
            numbers = self._numbers[part] = self._words[first : first + _INTEGERS_AT_ONCE].tolist()
        return numbers[place]


@dataclass(frozen=True)
class DeviceReadings:
    """The rows of one device on the host.

    Attributes:
        floats: FLOAT_COLUMNS of each row, one behind the other, of type code ``d``.
        integers: with or without the counts.
        unmeasured: numbers of rows that could not be written.
    """

    floats: array[float]
    integers: Integers
    unmeasured: Collection[int]


NO_ROWS: Final = DeviceReadings(array("d"), Integers(torch.empty(0, WORDS - FLOAT_COLUMNS, dtype=torch.int64)), ())
"""Of a device on which nothing was measured."""


@dataclass(frozen=True)
class Readings:
    """A table read back to the host: rows by the numbers that ``StatisticsTable.add`` gave.

    Attributes:
        devices: in the order in which the table met them.
    """

    devices: list[DeviceReadings] = field(default_factory=list)

    def has(self, row: int) -> bool:
        """Whether the row was written."""
        unmeasured = self.devices[row % DEVICES].unmeasured
        return not unmeasured or row // DEVICES not in unmeasured

    def summary(self, row: int, kind: Kind, is_scalar: bool) -> Summary:
        """The numbers of one row; of a 0-d tensor all four are its value, as in msProbe's dumps."""
        number, device = row // DEVICES, self.devices[row % DEVICES]
        at = FLOAT_COLUMNS * number
        maximum, minimum, mean, norm = device.floats[at : at + FLOAT_COLUMNS]
        if kind is Kind.FLOAT or kind is Kind.COMPLEX:
            return Summary(maximum, maximum, maximum, maximum) if is_scalar else Summary(maximum, minimum, mean, norm)
        high, low = device.integers.of(number)[:EXTREMES]
        if kind is Kind.BOOL:
            return Summary(bool(high), bool(low), None, None)
        if kind is Kind.UNSIGNED64:
            high, low = high + SIGN_BIT, low + SIGN_BIT
        return Summary(high, high, high, high) if is_scalar else Summary(high, low, mean, norm)

    def counts(self, row: int) -> Counts:
        """The counts of one row, of a table that counts."""
        nan, positive, negative, zero = self.devices[row % DEVICES].integers.of(row // DEVICES)[EXTREMES:]
        return Counts(nan, positive + negative, zero)


def read_rows(words: Tensor, accumulator: torch.dtype, has_counts: bool, unmeasured: Collection[int]) -> DeviceReadings:
    """Rows on the host, [n, WORDS] int64 and contiguous, as numbers."""
    integers = words[:, FLOAT_COLUMNS : WORDS if has_counts else WORDS - COUNTS]
    return DeviceReadings(_floats(words.view(accumulator)[:, :FLOAT_COLUMNS]), Integers(integers), unmeasured)


def _floats(values: Tensor) -> array[float]:
    """All values, one row behind the other."""
    numbers = array("d", bytes(values.numel() * WORD_BYTES))
    if numbers:
        torch.frombuffer(numbers, dtype=torch.float64).view(values.shape).copy_(values)
    return numbers
