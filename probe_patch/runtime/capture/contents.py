"""What the record of a tensor holds of its values: config.json's ``summary_mode``, one object for a whole dump."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol, TypeAlias

from probe_patch.runtime.stats.checksums import crc32, xor64
from probe_patch.runtime.stats.kinds import is_readable, kind_of
from probe_patch.runtime.stats.rows import Readings, Row
from probe_patch.runtime.stats.table import StatisticsTable

if TYPE_CHECKING:
    from collections.abc import Collection

    from torch import Tensor

    from probe_patch.runtime.capture.forms import Record
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

_COUNTED: Final = frozenset({"nan_count", "inf_count", "zero_count"})

_CHECKSUM_KEY: Final = "md5"


class Taken(NamedTuple):
    """What was taken of one tensor: where its numbers will be found, and its checksum."""

    row: Row | None
    checksum: str | None


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

    def before(self, taken: Taken, readings: Readings | None) -> dict[str, Record]:
        """The keys of the record between ``shape`` and ``requires_grad``; without readings the numbers are null."""
        ...

    def after(self, taken: Taken) -> dict[str, Record]:
        """The keys of the record at its end."""
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

    def before(self, taken: Taken, readings: Readings | None) -> dict[str, Record]:
        if taken.row is None or readings is None or not readings.has(taken.row):
            return {"Max": None, "Min": None, "Mean": None, "Norm": None}
        summary = readings.summary(taken.row)
        return {"Max": summary.maximum, "Min": summary.minimum, "Mean": summary.mean, "Norm": summary.norm}

    def after(self, taken: Taken) -> dict[str, Record]:
        return {}


class Chosen(Statistics):
    """The numbers named, and no others: a list. All are measured, but for counts that nobody asks for."""

    def __init__(self, numbers: Collection[NumberName], problems: Problems) -> None:
        self._counts = not _COUNTED.isdisjoint(numbers)
        super().__init__(problems, self._counts)
        self._chosen = [(index, key) for index, (name, key) in enumerate(NUMBER_KEYS.items()) if name in numbers]

    def take(self, values: Tensor) -> Taken:
        return super().take(values) if self._chosen else NOTHING

    def before(self, taken: Taken, readings: Readings | None) -> dict[str, Record]:
        if taken.row is None or readings is None or not readings.has(taken.row):
            return {key: None for _, key in self._chosen}
        numbers = (*readings.summary(taken.row), *(readings.counts(taken.row) if self._counts else ()))
        return {key: numbers[index] for index, key in self._chosen}


class WithCrc:
    """A CRC-32 of the bytes besides: ``"md5"``, and ``"md5"`` in a list."""

    def __init__(self, numbers: Contents) -> None:
        self._numbers = numbers

    def take(self, values: Tensor) -> Taken:
        checksum = crc32(values) if is_readable(values) else None
        return Taken(self._numbers.take(values).row, checksum)

    def launch(self) -> None:
        self._numbers.launch()

    def read(self) -> Readings:
        return self._numbers.read()

    def before(self, taken: Taken, readings: Readings | None) -> dict[str, Record]:
        return self._numbers.before(taken, readings)

    def after(self, taken: Taken) -> dict[str, Record]:
        return {_CHECKSUM_KEY: taken.checksum}


class Xor:
    """A checksum and no numbers: ``"xor"``."""

    def take(self, values: Tensor) -> Taken:
        return Taken(None, xor64(values)) if is_readable(values) else NOTHING

    def launch(self) -> None:
        pass

    def read(self) -> Readings:
        return Readings()

    def before(self, taken: Taken, readings: Readings | None) -> dict[str, Record]:
        return {_CHECKSUM_KEY: taken.checksum}

    def after(self, taken: Taken) -> dict[str, Record]:
        return {}
