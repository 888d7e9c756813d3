"""Statistics kept on the device, one row per tensor, and read with one copy per device."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import torch
from torch import Tensor

from probe_patch.runtime.stats import reference
from probe_patch.runtime.stats.kinds import Kind

ROWS_PER_BLOCK: Final = 4096

# A row is made of int64 words: the floats share the first four, seen through a float view, the integers have the rest.
_FLOAT_COLUMNS: Final = 4
_EXTREMES: Final = 2

Measure: TypeAlias = Callable[[Tensor, Kind, Tensor, Tensor], None]


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


class Row(NamedTuple):
    """Where a tensor's numbers will be found once the table is read."""

    device: torch.device
    number: int
    kind: Kind
    is_scalar: bool


class _Block:
    """``ROWS_PER_BLOCK`` rows on one device."""

    def __init__(self, device: torch.device, integer_columns: int) -> None:
        words = _FLOAT_COLUMNS + integer_columns
        self.words = torch.empty(ROWS_PER_BLOCK, words, dtype=torch.int64, device=device)
        self.floats = self.words.view(reference.accumulator(device))[:, :_FLOAT_COLUMNS]
        self.integers = self.words[:, _FLOAT_COLUMNS:]


@dataclass(frozen=True)
class Readings:
    """A table read back to the host."""

    floats: dict[torch.device, list[float]]
    integers: dict[torch.device, list[list[int]]]

    def summary(self, row: Row) -> Summary:
        """The numbers of one row; of a 0-d tensor all four are its value, as in msProbe's dumps."""
        at = _FLOAT_COLUMNS * row.number
        maximum, minimum, mean, norm = self.floats[row.device][at : at + _FLOAT_COLUMNS]
        high, low = self.integers[row.device][row.number][:_EXTREMES]
        if row.kind is Kind.BOOL:
            return Summary(bool(high), bool(low), None, None)
        if row.kind is Kind.UNSIGNED64:
            high, low = high + reference.SIGN_BIT, low + reference.SIGN_BIT
        if row.kind is not Kind.FLOAT and row.kind is not Kind.COMPLEX:
            maximum, minimum = high, low
        return Summary(maximum, maximum, maximum, maximum) if row.is_scalar else Summary(maximum, minimum, mean, norm)

    def counts(self, row: Row) -> Counts:
        """The counts of one row, of a table that has columns for them."""
        return Counts(*self.integers[row.device][row.number][_EXTREMES:])


class StatisticsTable:
    """Rows are added without waiting for the device and read all at once; one thread at a time (see ``Store.lock``).

    Args:
        measure: writes a tensor's numbers into a row; see ``reference.measure``.
        integer_columns: how many integers ``measure`` takes: 2, the extremes; or 5, with the counts behind them.
    """

    def __init__(self, measure: Measure = reference.measure, integer_columns: int = _EXTREMES) -> None:
        self._measure = measure
        self._integer_columns = integer_columns
        self._blocks: dict[torch.device, list[_Block]] = {}
        self._used: dict[torch.device, int] = {}

    def add(self, values: Tensor, kind: Kind) -> Row:
        """Measure a plain tensor of this kind; see ``reference.measure``."""
        device = values.device
        block, number = self._reserve(device)
        offset = number % ROWS_PER_BLOCK
        self._measure(values, kind, block.floats[offset], block.integers[offset])
        return Row(device, number, kind, values.dim() == 0)

    def read(self) -> Readings:
        """Everything measured since the last read. The device memory is given up."""
        blocks, self._blocks = self._blocks, {}
        used, self._used = self._used, {}
        readings = Readings({}, {})
        for device, device_blocks in blocks.items():
            if device.type != "cpu":
                # Rows may have been written on other streams than the one that copies them.
                torch.get_device_module(device).synchronize(device)
            words = torch.cat([block.words for block in device_blocks])[: used[device]].cpu()
            floats = words.view(reference.accumulator(device))[:, :_FLOAT_COLUMNS]
            readings.floats[device] = floats.flatten().tolist()
            readings.integers[device] = words[:, _FLOAT_COLUMNS:].tolist()
        return readings

    def _reserve(self, device: torch.device) -> tuple[_Block, int]:
        number = self._used.get(device, 0)
        blocks = self._blocks.setdefault(device, [])
        if number == len(blocks) * ROWS_PER_BLOCK:
            blocks.append(_Block(device, self._integer_columns))
        self._used[device] = number + 1
        return blocks[-1], number
