"""What the record of a tensor holds of its values: config.json's ``summary_mode``, one object for a whole dump."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from probe_patch.runtime.number_texts import NumberTexts
from probe_patch.runtime.stats.checksums.pending import Checksum, value_of
from probe_patch.runtime.stats.checksums.table import ChecksumTable
from probe_patch.runtime.stats.kinds import is_readable, kind_of
from probe_patch.runtime.stats.table import StatisticsTable

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from torch import Tensor

    from probe_patch.runtime.capture.forms import Look
    from probe_patch.runtime.json_text import JsonStyle
    from probe_patch.runtime.problems import Problems
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


_NO_CHECKSUM: Final = '"md5": null, '

NOTHING: Final = -1
"""In place of a row, of a tensor without numbers."""


class Contents(Protocol):
    """Takes something of each tensor, one after the other, and tells of it once the numbers are read from the device.

    Where ``take`` raises, it has taken nothing, and the tensor is still the next one.
    """

    def take(self, values: Tensor | None) -> None:
        """Of the next tensor, by the next ``launch`` at the latest. ``values`` are plain; of None there is nothing."""
        ...

    def take_again(self, place: int) -> None:
        """The next tensor is this one, by its place since the last read, and as it was then."""
        ...

    def launch(self) -> None:
        """Take what is still to be taken: the values may change from then on."""
        ...

    def read(self, style: JsonStyle) -> Taken:
        """What was taken since the last read."""
        ...

    def nothing(self) -> Taken:
        """Where reading failed: all numbers are null."""
        ...


class Taken(Protocol):
    """What was taken, by tensors' places since the read before."""

    def before(self, place: int, look: Look) -> str:
        """The members of a record before ``requires_grad``, each with a comma."""
        ...

    def after(self, place: int) -> str:
        """The members of a record at its end, each behind a comma."""
        ...

    def counts(self, place: int) -> Counts | None:
        """How many NaN and infinities a tensor has, where they were counted."""
        ...


class Statistics:
    """Numbers: ``"statistics"``, and the names in a list."""

    def __init__(self, problems: Problems, numbers: Collection[NumberName] = STATISTICS) -> None:
        self._columns = [index for index, name in enumerate(NUMBER_KEYS) if name in numbers]
        self._form = "".join(f'"{key}": %s, ' for name, key in NUMBER_KEYS.items() if name in numbers)
        self._counts = not _COUNTED.isdisjoint(numbers)
        self._table = StatisticsTable(problems, self._counts)
        self._rows: list[int] = []

    def take(self, values: Tensor | None) -> None:
        kind = None if values is None or not self._columns else kind_of(values)
        self._rows.append(NOTHING if values is None or kind is None else self._table.add(values, kind))

    def take_again(self, place: int) -> None:
        self._rows.append(self._rows[place])

    def launch(self) -> None:
        self._table.launch()

    def read(self, style: JsonStyle) -> _Numbers:
        rows, self._rows = self._rows, []
        numbers = NumberTexts(self._table.read(), style)
        if self._counts or len(self._columns) != len(STATISTICS):
            return _ChosenNumbers(rows, numbers, self._form, self._columns, self._counts)
        return _Numbers(rows, numbers, self._form)

    def nothing(self) -> Taken:
        return _Nothing(self._form.replace("%s", "null"))


class _Numbers:
    """The four statistics of each tensor."""

    def __init__(self, rows: list[int], numbers: NumberTexts, form: str) -> None:
        self._rows = rows
        self._numbers = numbers
        self._form = form
        self._none = form.replace("%s", "null")

    def before(self, place: int, look: Look) -> str:
        row, numbers = self._rows[place], self._numbers
        if row == NOTHING or look.kind is None or not numbers.has(row):
            return self._none
        found = numbers.floats(row) if look.has_floats else numbers.summary(row, look.kind, look.is_scalar)
        return self._form % self._chosen(row, found)

    def after(self, place: int) -> str:
        return ""

    def counts(self, place: int) -> Counts | None:
        return None

    def _chosen(self, row: int, statistics: Sequence[str]) -> tuple[object, ...]:
        return tuple(statistics)


class _ChosenNumbers(_Numbers):
    """Some of the numbers. All that a backend measures anyway were measured; counts, where one was asked for."""

    def __init__(
        self, rows: list[int], numbers: NumberTexts, form: str, columns: Sequence[int], has_counts: bool
    ) -> None:
        super().__init__(rows, numbers, form)
        self._columns = columns
        self._has_counts = has_counts

    def counts(self, place: int) -> Counts | None:
        row = self._rows[place]
        return self._numbers.counts(row) if self._has_counts and row != NOTHING and self._numbers.has(row) else None

    def _chosen(self, row: int, statistics: Sequence[str]) -> tuple[object, ...]:
        found = (*statistics, *(self._numbers.counts(row) if self._has_counts else ()))
        return tuple(found[column] for column in self._columns)


class _Nothing:
    """Of no tensor anything."""

    def __init__(self, members: str) -> None:
        self._members = members

    def before(self, place: int, look: Look) -> str:
        return self._members

    def after(self, place: int) -> str:
        return ""

    def counts(self, place: int) -> Counts | None:
        return None


class WithCrc:
    """A CRC-32 of the bytes besides: ``"md5"``, and ``"md5"`` in a list."""

    def __init__(self, numbers: Contents, problems: Problems) -> None:
        self._numbers = numbers
        self._table = ChecksumTable(problems)
        self._checksums: list[Checksum | None] = []

    def take(self, values: Tensor | None) -> None:
        checksum = self._table.crc32(values) if values is not None and is_readable(values) else None
        self._numbers.take(values)
        self._checksums.append(checksum)

    def take_again(self, place: int) -> None:
        self._numbers.take_again(place)
        self._checksums.append(self._checksums[place])

    def launch(self) -> None:
        self._numbers.launch()

    def read(self, style: JsonStyle) -> _NumbersAndCrc:
        checksums, self._checksums = self._checksums, []
        self._table.read()
        return _NumbersAndCrc(self._numbers.read(style), checksums)

    def nothing(self) -> Taken:
        return self._numbers.nothing()


class _NumbersAndCrc:
    def __init__(self, numbers: Taken, checksums: list[Checksum | None]) -> None:
        self._checksums = checksums
        self.before = numbers.before
        self.counts = numbers.counts

    def after(self, place: int) -> str:
        checksum = value_of(self._checksums[place])
        return ', "md5": null' if checksum is None else f', "md5": "{checksum:08x}"'


class Xor:
    """A checksum and no numbers: ``"xor"``."""

    def __init__(self, problems: Problems) -> None:
        self._table = ChecksumTable(problems)
        self._checksums: list[Checksum | None] = []

    def take(self, values: Tensor | None) -> None:
        # Of no bytes, null, as msProbe has it.
        has_bytes = values is not None and is_readable(values) and values.numel()
        self._checksums.append(self._table.xor64(values) if values is not None and has_bytes else None)

    def take_again(self, place: int) -> None:
        self._checksums.append(self._checksums[place])

    def launch(self) -> None:
        pass

    def read(self, style: JsonStyle) -> _Xors:
        checksums, self._checksums = self._checksums, []
        self._table.read()
        return _Xors(checksums)

    def nothing(self) -> Taken:
        return _Nothing(_NO_CHECKSUM)


class _Xors:
    def __init__(self, checksums: list[Checksum | None]) -> None:
        self._checksums = checksums

    def before(self, place: int, look: Look) -> str:
        checksum = value_of(self._checksums[place])
        return _NO_CHECKSUM if checksum is None else f'"md5": "0x{checksum:016x}", '

    def after(self, place: int) -> str:
        return ""

    def counts(self, place: int) -> Counts | None:
        return None
