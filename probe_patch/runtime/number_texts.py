"""The numbers of a dump as they stand in its JSON, written all at once when they are read from the device."""

from typing import Final

from probe_patch.runtime.json_text import JsonStyle
from probe_patch.runtime.stats.kinds import Kind
from probe_patch.runtime.stats.rows import FLOAT_COLUMNS, Counts, Readings, Row

_FLOATS: Final = frozenset({Kind.FLOAT, Kind.COMPLEX})


class NumberTexts:
    """A table that was read, as text."""

    def __init__(self, readings: Readings, style: JsonStyle) -> None:
        self._readings = readings
        self._style = style
        self._floats = {device: style.numbers(rows.floats) for device, rows in readings.devices.items()}

    def has(self, row: Row) -> bool:
        """As ``Readings.has``."""
        return self._readings.has(row)

    def summary(self, row: Row) -> tuple[str, ...]:
        """The four numbers of one row; see ``Readings.summary``."""
        if row.kind in _FLOATS and not row.is_scalar:
            at = FLOAT_COLUMNS * row.number
            return tuple(self._floats[row.device][at : at + FLOAT_COLUMNS])
        return tuple(map(self._style.leaf, self._readings.summary(row)))

    def counts(self, row: Row) -> Counts:
        """As ``Readings.counts``."""
        return self._readings.counts(row)
