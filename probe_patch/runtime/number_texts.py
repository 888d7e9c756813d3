"""The numbers of a dump as they stand in its JSON, written all at once when they are read from the device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probe_patch.runtime.stats.rows import DEVICES, FLOAT_COLUMNS, Readings

if TYPE_CHECKING:
    from probe_patch.runtime.capture.forms import Look
    from probe_patch.runtime.json_text import JsonStyle


class NumberTexts:
    """A table that was read, as text; see ``Readings``."""

    def __init__(self, readings: Readings, style: JsonStyle) -> None:
        self._readings = readings
        self._style = style
        self._floats = [style.numbers(device.floats) for device in readings.devices]
        self.has = readings.has
        self.counts = readings.counts

    def summary(self, row: int, look: Look) -> tuple[str, ...]:
        """The four statistics of a tensor that looks like this, and has any."""
        if look.has_floats:
            at = FLOAT_COLUMNS * (row // DEVICES)
            return tuple(self._floats[row % DEVICES][at : at + FLOAT_COLUMNS])
        if look.kind is None:
            raise ValueError("a tensor without numbers has no row")
        return tuple(map(self._style.leaf, self._readings.summary(row, look.kind, look.is_scalar)))
