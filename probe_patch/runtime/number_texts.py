"""The numbers of a dump as they stand in its JSON, written all at once when they are read from the device."""

from collections.abc import Sequence

from probe_patch.runtime.json_text import JsonStyle
from probe_patch.runtime.stats.kinds import Kind
from probe_patch.runtime.stats.rows import DEVICES, FLOAT_COLUMNS, Counts, Readings


class NumberTexts:
    """A table that was read, as text. Its methods are as those of ``Readings``."""

    def __init__(self, readings: Readings, style: JsonStyle) -> None:
        self._readings = readings
        self._style = style
        self._floats = [style.numbers(device.floats) for device in readings.devices]

    def has(self, row: int) -> bool:
        return self._readings.has(row)

    def floats(self, row: int) -> Sequence[str]:
        """``summary`` of a row that is no scalar's, of floats or complex numbers."""
        at = FLOAT_COLUMNS * (row // DEVICES)
        return self._floats[row % DEVICES][at : at + FLOAT_COLUMNS]

    def summary(self, row: int, kind: Kind, is_scalar: bool) -> Sequence[str]:
        return [self._style.leaf(number) for number in self._readings.summary(row, kind, is_scalar)]

    def counts(self, row: int) -> Counts:
        return self._readings.counts(row)
