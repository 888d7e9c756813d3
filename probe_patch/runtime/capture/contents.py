"""What the record of a tensor holds of its values: config.json's ``summary_mode``, one object for a whole dump."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol, TypeAlias

from probe_patch.runtime.stats.checksums.pending import Checksum, value_of
from probe_patch.runtime.stats.checksums.table import ChecksumTable
from probe_patch.runtime.stats.kinds import is_readable, kind_of
from probe_patch.runtime.stats.rows import Readings, Row
from probe_patch.runtime.stats.table import StatisticsTable

if TYPE_CHECKING:
    from collections.abc import Collection

    from torch import Tensor

    from probe_patch.runtime.number_texts import NumberTexts
    from probe_patch.runtime.problems import Problems

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

_SUMMARY: Final = '"Max": %s, "Min": %s, "Mean": %s, "Norm": %s, '
_NO_SUMMARY: Final = _SUMMARY % (("null",) * 4)
_COUNTED: Final = frozenset({"nan_count", "inf_count", "zero_count"})


class Taken(NamedTuple):
    """What was taken of one tensor: where its numbers will be found, and its checksum."""

    row: Row | None
    checksum: Checksum | None


NOTHING: Final = Taken(None, None)


class Contents(Protocol):
    """Takes something of each tensor, and writes it down once the numbers are read from the device."""

    def take(self, values: Tensor) -> Taken:
        """Take it of plain values, by the next ``launch`` at the latest."""
        ...

    def launch(self) -> None:
        """Take what is still to be taken: the values may change from then on."""
        ...

    def read(self) -> Readings:
        """The numbers of everything taken since the last read."""
        ...

    def before(self, taken: Taken, numbers: NumberTexts | None) -> str:
        """The members of the record before ``requires_grad``, each with a comma; without numbers they are null."""
        ...

    def after(self, taken: Taken) -> str:
        """The members of the record at its end, each behind a comma."""
        ...


class Statistics:
    """Maximum, minimum, mean and L2 norm: ``"statistics"``."""

    def __init__(self, problems: Problems, counts: bool = False) -> None:
        self._table = StatisticsTable(problems, counts)

    def take(self, values: Tensor) -> Taken:
        kind = kind_of(values)
        return NOTHING if kind is None else Taken(self._table.add(values, kind), None)

    def launch(self) -> None:
        self._table.launch()

    def read(self) -> Readings:
        return self._table.read()

    def before(self, taken: Taken, numbers: NumberTexts | None) -> str:
        if taken.row is None or numbers is None or not numbers.has(taken.row):
            return _NO_SUMMARY
        return _SUMMARY % numbers.summary(taken.row)

    def after(self, taken: Taken) -> str:
        return ""


class Chosen(Statistics):
    """The numbers named, and no others: a list. All are measured, but for counts that nobody asks for."""

    def __init__(self, numbers: Collection[NumberName], problems: Problems) -> None:
        self._counts = not _COUNTED.isdisjoint(numbers)
        super().__init__(problems, self._counts)
        self._chosen = [(index, key) for index, (name, key) in enumerate(NUMBER_KEYS.items()) if name in numbers]

    def take(self, values: Tensor) -> Taken:
        return super().take(values) if self._chosen else NOTHING

    def before(self, taken: Taken, numbers: NumberTexts | None) -> str:
        if taken.row is None or numbers is None or not numbers.has(taken.row):
            return "".join(f'"{key}": null, ' for _, key in self._chosen)
        found = (*numbers.summary(taken.row), *(numbers.counts(taken.row) if self._counts else ()))
        return "".join(f'"{key}": {found[index]}, ' for index, key in self._chosen)


class WithCrc:
    """A CRC-32 of the bytes besides, as eight hexadecimal digits: ``"md5"``, and ``"md5"`` in a list."""

    def __init__(self, numbers: Contents, problems: Problems) -> None:
        self._numbers = numbers
        self._checksums = ChecksumTable(problems)

    def take(self, values: Tensor) -> Taken:
        checksum = self._checksums.crc32(values) if is_readable(values) else None
        return Taken(self._numbers.take(values).row, checksum)

    def launch(self) -> None:
        self._numbers.launch()

    def read(self) -> Readings:
        self._checksums.read()
        return self._numbers.read()

    def before(self, taken: Taken, numbers: NumberTexts | None) -> str:
        return self._numbers.before(taken, numbers)

    def after(self, taken: Taken) -> str:
        checksum = value_of(taken.checksum)
        return ', "md5": null' if checksum is None else f', "md5": "{checksum:08x}"'


class Xor:
    """A checksum and no numbers, as sixteen hexadecimal digits; of no values null, as msProbe has it: ``"xor"``."""

    def __init__(self, problems: Problems) -> None:
        self._checksums = ChecksumTable(problems)

    def take(self, values: Tensor) -> Taken:
        return Taken(None, self._checksums.xor64(values)) if is_readable(values) and values.numel() else NOTHING

    def launch(self) -> None:
        pass

    def read(self) -> Readings:
        self._checksums.read()
        return Readings()

    def before(self, taken: Taken, numbers: NumberTexts | None) -> str:
        checksum = value_of(taken.checksum)
        return '"md5": null, ' if checksum is None else f'"md5": "0x{checksum:016x}", '

    def after(self, taken: Taken) -> str:
        return ""
