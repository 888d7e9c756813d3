"""What the record of a tensor holds of its values: config.json's ``summary_mode``, one object for a whole dump."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from probe_patch.runtime.capture.forms import Nulls
from probe_patch.runtime.capture.looks import look_of_whole
from probe_patch.runtime.checksum_texts import NULL_CRC, NULL_XOR, CrcTexts, XorTexts
from probe_patch.runtime.number_texts import NumberForm, NumberTexts
from probe_patch.runtime.stats.checksums.table import ChecksumTable
from probe_patch.runtime.stats.row_numbers import RowNumbers
from probe_patch.runtime.stats.table import NO_ROW, StatisticsTable

if TYPE_CHECKING:
    from collections.abc import Collection

    from torch import Tensor

    from probe_patch.runtime.capture.forms import Look, Taken
    from probe_patch.runtime.json_text import JsonStyle
    from probe_patch.runtime.problems import Problems
    from probe_patch.runtime.stats.checksums.pending import Checksum
    from probe_patch.runtime.stats.kinds import Kind

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

NOTHING: Final = NO_ROW
"""In place of a row, of a tensor without numbers."""


class Contents:
    """Takes something of each tensor, one after the other, and tells of it once the numbers are read from the device.

    Where ``take`` raises, it has taken nothing, and the tensor is still the next one.
    """

    def take(self, values: Tensor | None, kind: Kind | None) -> None:
        """Of the next tensor, by the next ``launch`` at the latest.

        Args:
            values: plain and readable; of None there is nothing.
            kind: what kind of numbers they have; None for none.
        """

    def take_whole(self, tensor: Tensor) -> Look | None:
        """Of the next tensor, at once, where that can be done more quickly than by ``take``.

        Returns:
            what it looks like; None where nothing was taken.
        """
        return None

    def take_again(self, place: int) -> None:
        """The next tensor is this one, by its place since the last read, and as it was then."""

    def launch(self) -> None:
        """Take what is still to be taken: the values may change from then on."""

    def read(self, style: JsonStyle) -> Taken:
        """What was taken since the last read."""
        raise NotImplementedError

    def nothing(self) -> Nulls:
        """In its place where reading failed."""
        raise NotImplementedError


class Statistics(Contents):
    """Numbers: ``"statistics"``, and the names in a list.

    All that a backend measures anyway are measured, and counts where one is asked for.
    """

    def __init__(self, problems: Problems, numbers: Collection[NumberName] = STATISTICS) -> None:
        self._columns = [index for index, name in enumerate(NUMBER_KEYS) if name in numbers]
        self._form = NumberForm(list(NUMBER_KEYS.values()), self._columns)
        self._counts = not _COUNTED.isdisjoint(numbers)
        self._table = StatisticsTable(problems, self._counts, describe=look_of_whole)
        self._rows = RowNumbers()

    def launch(self) -> None:
        self._table.launch()

    def take(self, values: Tensor | None, kind: Kind | None) -> None:
        has_numbers = values is not None and kind is not None and self._columns
        self._rows.append(self._table.add(values, kind) if has_numbers else NOTHING)  # type: ignore[arg-type]

    def take_whole(self, tensor: Tensor) -> Look | None:
        look: Look | None = self._table.take(tensor) if self._columns else None
        if look is not None:
            self._rows.append(self._table.row)
        return look

    def take_again(self, place: int) -> None:
        self._rows.append(self._rows.at(place))

    def read(self, style: JsonStyle) -> Taken:
        rows, self._rows = self._rows, RowNumbers()
        return NumberTexts(self._form, rows, self._table.read(), style)

    def nothing(self) -> Nulls:
        self._rows = RowNumbers()
        return Nulls(self._form.nulls)


class WithCrc(Contents):
    """A CRC-32 of the bytes besides: ``"md5"``, and ``"md5"`` in a list."""

    def __init__(self, numbers: Contents, problems: Problems) -> None:
        self._numbers = numbers
        self._problems = problems
        self._table = ChecksumTable(problems)
        self._checksums: list[Checksum | None] = []

    def take(self, values: Tensor | None, kind: Kind | None) -> None:
        checksum = None if values is None else self._table.crc32(values)
        self._numbers.take(values, kind)
        self._checksums.append(checksum)

    def take_whole(self, tensor: Tensor) -> Look | None:
        look = self._numbers.take_whole(tensor)
        if look is not None:
            self._checksums.append(self._checksum_of(tensor))
        return look

    def _checksum_of(self, tensor: Tensor) -> Checksum | None:
        try:
            return self._table.crc32(tensor)
        except Exception as error:
            self._problems.note("measuring a tensor", error)
            return None

    def take_again(self, place: int) -> None:
        self._numbers.take_again(place)
        self._checksums.append(self._checksums[place])

    def launch(self) -> None:
        self._numbers.launch()

    def read(self, style: JsonStyle) -> Taken:
        checksums, self._checksums = self._checksums, []
        self._table.read()
        return CrcTexts(self._numbers.read(style), checksums)

    def nothing(self) -> Nulls:
        self._checksums = []
        return Nulls(self._numbers.nothing().before, NULL_CRC)


class Xor(Contents):
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

    def read(self, style: JsonStyle) -> Taken:
        checksums, self._checksums = self._checksums, []
        self._table.read()
        return XorTexts(checksums)

    def nothing(self) -> Nulls:
        self._checksums = []
        return Nulls(NULL_XOR)
