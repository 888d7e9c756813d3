"""The numbers of a dump as they stand in its JSON, written all at once when they are read from the device."""

from typing import Final

from probe_patch.runtime.json_text import JsonStyle
from probe_patch.runtime.stats.kinds import Kind
from probe_patch.runtime.stats.rows import DEVICES, FLOAT_COLUMNS, Counts, Readings

_FLOATS: Final = frozenset({Kind.FLOAT, Kind.COMPLEX})


class NumberTexts:
    """A table that was read, as text. Its methods are as those of ``Readings``."""

    def __init__(self, readings: Readings, style: JsonStyle) -> None:
        self._readings = readings
        self._style = style
        self._floats = [style.numbers(device.floats) for device in readings.devices]

    def has(self, row: int) -> bool:
        return self._readings.has(row)

    def summary(self, row: int, kind: Kind, is_scalar: bool) -> tuple[str, ...]:
        if kind in _FLOATS and not is_scalar:
            at = FLOAT_COLUMNS * (row // DEVICES)
            return tuple(self._floats[row % DEVICES][at : at + FLOAT_COLUMNS])
        return tuple(map(self._style.leaf, self._readings.summary(row, kind, is_scalar)))

    def counts(self, row: int) -> Counts:
        return self._readings.counts(row)
