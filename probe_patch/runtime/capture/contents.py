"""What the record of a tensor holds of its values: config.json's ``summary_mode``, one object for a whole dump."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from probe_patch.runtime.number_texts import NumberTexts
from probe_patch.runtime.stats.checksums.pending import Checksum, value_of
from probe_patch.runtime.stats.checksums.table import ChecksumTable
from probe_patch.runtime.stats.table import StatisticsTable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from torch import Tensor

    from probe_patch.runtime.capture.forms import Look
    from probe_patch.runtime.json_text import JsonStyle
    from probe_patch.runtime.problems import Problems
    from probe_patch.runtime.stats.kinds import Kind
    from probe_patch.runtime.stats.rows import Counts

NumberName: TypeAlias = Literal["max", "min", "mean", "norm", "nan_count", "inf_count", "zero_count"]

NUMBER_KEYS: Final[dict[NumberName, str]] = {
    "max": "Max",
    "min": "Min",
    "mean": "Mean",
    "norm": "Norm",
    "nan_count": "NanCount",
    "inf_count": "InfCount",
    "zero_count": "ZeroCount",
}
"""The keys of a record in their order, the first four as msProbe has them."""

STATISTICS: Final[tuple[NumberName, ...]] = ("max", "min", "mean", "norm")
"""What msProbe calls statistics."""

_COUNTED: Final = frozenset({"nan_count", "inf_count", "zero_count"})

NOTHING: Final = -1
"""In place of a row, of a tensor without numbers."""


class Contents(Protocol):
    """Takes something of each tensor, one after the other, and tells of it once the numbers are read from the device.

    Where ``take`` raises, it has taken nothing, and the tensor is still the next one.
    """

    def take(self, values: Tensor | None, kind: Kind | None) -> None:
        """Of the next tensor, by the next ``launch`` at the latest.

        Args:
            values: plain and readable; of None there is nothing.
            kind: what kind of numbers they have; None for none.
        """
        ...

    def take_again(self, place: int) -> None:
        """The next tensor is this one, by its place since the last read, and as it was then."""
        ...

    def launch(self) -> None:
        """Take what is still to be taken: the values may change from then on."""
        ...

    def read(self, style: JsonStyle, looks: Sequence[Look]) -> Taken:
        """What was taken since the last read, of tensors that look like this."""
        ...

    def nothing(self, looks: Sequence[Look]) -> Taken:
        """Where reading failed: all numbers are null."""
        ...


@dataclass(frozen=True)
class Taken:
    """What was taken, of one tensor after the other.

    Attributes:
        before: the members of its record before ``requires_grad``, each with a comma.
        after: the members at its end, each behind a comma.
        counts: how many NaN, infinities and zeros it has, by its place; None where they were not counted.
    """

    before: Sequence[str]
    after: Iterable[str]
    counts: Callable[[int], Counts | None]


def _uncounted(place: int) -> Counts | None:
    return None


class Statistics:
    """Numbers: ``"statistics"``, and the names in a list.

    All that a backend measures anyway are measured, and counts where one is asked for.
    """

    def __init__(self, problems: Problems, numbers: Collection[NumberName] = STATISTICS) -> None:
        self._columns = [index for index, name in enumerate(NUMBER_KEYS) if name in numbers]
        self._form = "".join(f'"{key}": %s, ' for name, key in NUMBER_KEYS.items() if name in numbers)
        self._counts = not _COUNTED.isdisjoint(numbers)
        self._are_all_four = numbers == STATISTICS
        self._table = StatisticsTable(problems, self._counts)
        self._rows: list[int] = []
        self.launch = self._table.launch

    def take(self, values: Tensor | None, kind: Kind | None) -> None:
        has_numbers = values is not None and kind is not None and self._columns
        self._rows.append(self._table.add(values, kind) if has_numbers else NOTHING)  # type: ignore[arg-type]

    def take_again(self, place: int) -> None:
        self._rows.append(self._rows[place])

    def read(self, style: JsonStyle, looks: Sequence[Look]) -> Taken:
        rows, self._rows = self._rows, []
        numbers = NumberTexts(self._table.read(), style)
        form, are_all_four, none = self._form, self._are_all_four, self._form.replace("%s", "null")
        before: list[str] = []
        for row, look in zip(rows, looks, strict=True):
            if row == NOTHING or look.kind is None or not numbers.has(row):
                before.append(none)
            elif are_all_four:
                before.append(form % numbers.summary(row, look))
            else:
                found = (*numbers.summary(row, look), *(numbers.counts(row) if self._counts else ()))
                before.append(form % tuple(found[column] for column in self._columns))
        return Taken(before, repeat(""), partial(self._counts_of, rows, numbers) if self._counts else _uncounted)

    def nothing(self, looks: Sequence[Look]) -> Taken:
        self._rows = []
        return Taken([self._form.replace("%s", "null")] * len(looks), repeat(""), _uncounted)

    @staticmethod
    def _counts_of(rows: Sequence[int], numbers: NumberTexts, place: int) -> Counts | None:
        row = rows[place]
        return numbers.counts(row) if row != NOTHING and numbers.has(row) else None


class WithCrc:
    """A CRC-32 of the bytes besides: ``"md5"``, and ``"md5"`` in a list."""

    def __init__(self, numbers: Contents, problems: Problems) -> None:
        self._numbers = numbers
        self._table = ChecksumTable(problems)
        self._checksums: list[Checksum | None] = []

    def take(self, values: Tensor | None, kind: Kind | None) -> None:
        checksum = None if values is None else self._table.crc32(values)
        self._numbers.take(values, kind)
        self._checksums.append(checksum)

    def take_again(self, place: int) -> None:
        self._numbers.take_again(place)
        self._checksums.append(self._checksums[place])

    def launch(self) -> None:
        self._numbers.launch()

    def read(self, style: JsonStyle, looks: Sequence[Look]) -> Taken:
        checksums, self._checksums = self._checksums, []
        self._table.read()
        numbers = self._numbers.read(style, looks)
        return Taken(numbers.before, [f", {_member(checksum, '08x')}" for checksum in checksums], numbers.counts)

    def nothing(self, looks: Sequence[Look]) -> Taken:
        self._checksums = []
        numbers = self._numbers.nothing(looks)
        return Taken(numbers.before, repeat(f", {_member(None, '')}"), _uncounted)


class Xor:
    """A checksum and no numbers, as sixteen hexadecimal digits; of no values null, as msProbe has it: ``"xor"``."""

    def __init__(self, problems: Problems) -> None:
        self._table = ChecksumTable(problems)
        self._checksums: list[Checksum | None] = []

    def take(self, values: Tensor | None, kind: Kind | None) -> None:
        self._checksums.append(self._table.xor64(values) if values is not None and values.numel() else None)

    def take_again(self, place: int) -> None:
        self._checksums.append(self._checksums[place])

    def launch(self) -> None:
        pass

    def read(self, style: JsonStyle, looks: Sequence[Look]) -> Taken:
        checksums, self._checksums = self._checksums, []
        self._table.read()
        return Taken([f"{_member(checksum, '#018x')}, " for checksum in checksums], repeat(""), _uncounted)

    def nothing(self, looks: Sequence[Look]) -> Taken:
        self._checksums = []
        return Taken([f"{_member(None, '')}, "] * len(looks), repeat(""), _uncounted)


def _member(checksum: Checksum | None, form: str) -> str:
    value = value_of(checksum)
    return '"md5": null' if value is None else f'"md5": "{value:{form}}"'
