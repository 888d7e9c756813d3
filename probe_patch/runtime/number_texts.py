"""The numbers of a dump as they stand in its JSON, written all at once when they are read from the device."""

from probe_patch.runtime.json_text import JsonStyle
from probe_patch.runtime.stats.kinds import Kind
from probe_patch.runtime.stats.table import Counts, Readings, Row

_FLOATS = frozenset({Kind.FLOAT, Kind.COMPLEX})


class NumberTexts:
    """A table that was read, as text."""

    def __init__(self, readings: Readings, style: JsonStyle) -> None:
        self.style = style
        self._readings = readings
        self._floats = {device: style.numbers(floats) for device, floats in readings.floats.items()}

    def summary(self, row: Row) -> tuple[str, ...]:
        """The four numbers of one row; see ``Readings.summary``."""
        if row.kind in _FLOATS and not row.is_scalar:
            at = 4 * row.number
            return tuple(self._floats[row.device][at : at + 4])
        return tuple(map(self.style.leaf, self._readings.summary(row)))

    def counts(self, row: Row) -> Counts:
        """As ``Readings.counts``."""
        return self._readings.counts(row)
