"""The numbers of a dump as they stand in its JSON, written all at once when they are read from the device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probe_patch.runtime.capture.forms import Taken
from probe_patch.runtime.stats.rows import DEVICES, FLOAT_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_patch.runtime.capture.forms import Look
    from probe_patch.runtime.json_text import JsonStyle
    from probe_patch.runtime.stats.kinds import Kind
    from probe_patch.runtime.stats.rows import Counts, Readings

_ALL_FOUR = '"Max": %s, "Min": %s, "Mean": %s, "Norm": %s, '


class NumberForm:
    """Which numbers a record has, and how they stand in it.

    Args:
        keys: of them all.
        columns: which of these, in their order: first those of ``Summary``, behind them those of ``Counts``.

    Attributes:
        nulls: the members of a tensor without numbers.
    """

    def __init__(self, keys: Sequence[str], columns: Sequence[int]) -> None:
        self._members = "".join(f'"{keys[column]}": %s, ' for column in columns)
        self._columns = columns
        self.nulls = self._members.replace("%s", "null")
        self.has_counts = any(column >= FLOAT_COLUMNS for column in columns)
        self.is_all_four = self._members == _ALL_FOUR

    def members(self, summary: tuple[str, ...], counts: tuple[int, ...]) -> str:
        """The members of a tensor with these numbers; ``counts`` are empty where none are asked for."""
        found = (*summary, *counts)
        return self._members % tuple([found[column] for column in self._columns])


class NumberTexts(Taken):
    """A table that was read, as text.

    Args:
        rows: of each tensor, its number in ``readings``; negative where it has none.
    """

    __slots__ = ("_floats", "_form", "_is_whole", "_readings", "_rows", "_style")

    def __init__(self, form: NumberForm, rows: list[int], readings: Readings, style: JsonStyle) -> None:
        self._form = form
        self._rows = rows
        self._readings = readings
        self._style = style
        self._floats = [style.numbers(device.floats) for device in readings.devices]
        self._is_whole = not any(device.unmeasured for device in readings.devices)

    def text(self, place: int, look: Look, end: str) -> str:
        row, form, kind = self._rows[place], self._form, look.kind
        if row < 0 or kind is None or not self._has(row):
            return f"{look.before}{form.nulls}{look.after}{end}}}"
        if look.has_floats and form.is_all_four:
            # As nearly all are; they have no time for a list of their members.
            texts, at = self._floats[row % DEVICES], FLOAT_COLUMNS * (row // DEVICES)
            return (
                f'{look.before}"Max": {texts[at]}, "Min": {texts[at + 1]}, "Mean": {texts[at + 2]}, '
                f'"Norm": {texts[at + 3]}, {look.after}{end}}}'
            )
        counts = self._readings.counts(row) if form.has_counts else ()
        return f"{look.before}{form.members(self._summary(row, look, kind), counts)}{look.after}{end}}}"

    def counts(self, place: int) -> Counts | None:
        row = self._rows[place]
        return self._readings.counts(row) if self._form.has_counts and row >= 0 and self._has(row) else None

    def _has(self, row: int) -> bool:
        return self._is_whole or self._readings.has(row)

    def _summary(self, row: int, look: Look, kind: Kind) -> tuple[str, ...]:
        if look.has_floats:
            at = FLOAT_COLUMNS * (row // DEVICES)
            return tuple(self._floats[row % DEVICES][at : at + FLOAT_COLUMNS])
        return tuple(map(self._style.leaf, self._readings.summary(row, kind, look.is_scalar)))
