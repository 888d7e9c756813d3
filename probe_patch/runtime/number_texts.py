"""The numbers of a dump as they stand in its JSON, written all at once when they are read from the device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from probe_patch.runtime.capture.forms import Taken
from probe_patch.runtime.stats.rows import DEVICES, FLOAT_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_patch.runtime.ascii_text import AsciiText
    from probe_patch.runtime.capture.forms import Look
    from probe_patch.runtime.json_text import JsonStyle
    from probe_patch.runtime.stats.kinds import Kind
    from probe_patch.runtime.stats.row_numbers import RowNumbers
    from probe_patch.runtime.stats.rows import Counts, Readings

_ALL_FOUR: Final = [('"Max": ', 0), ('"Min": ', 1), ('"Mean": ', 2), ('"Norm": ', 3)]

_AROUND_FOUR: Final = ('"Max": ', ', "Min": ', ', "Mean": ', ', "Norm": ', ", ")


class NumberForm:
    """Which numbers a record has, and how they stand in it.

    Args:
        keys: of them all.
        columns: which of these, in their order: first those of ``Summary``, behind them those of ``Counts``.

    Attributes:
        members: of each, what stands before it, and its column.
        nulls: the members of a tensor without numbers.
    """

    def __init__(self, keys: Sequence[str], columns: Sequence[int]) -> None:
        self.members = [(f'"{keys[column]}": ', column) for column in columns]
        self.nulls = "".join(f"{key}null, " for key, _ in self.members)
        self.has_counts = any(column >= FLOAT_COLUMNS for column in columns)
        self.is_all_four = self.members == _ALL_FOUR


class NumberTexts(Taken):
    """A table that was read, as text.

    Args:
        rows: of each tensor, its number in ``readings``; negative where it has none.
    """

    __slots__ = ("_floats", "_form", "_is_whole", "_readings", "_rows", "_style")

    def __init__(self, form: NumberForm, rows: RowNumbers, readings: Readings, style: JsonStyle) -> None:
        self._form = form
        self._rows = rows
        self._readings = readings
        self._style = style
        self._floats = [style.numbers(device.floats) for device in readings.devices]
        self._is_whole = not any(device.unmeasured for device in readings.devices)

    def add(self, text: AsciiText, place: int, look: Look) -> None:
        row, form, kind = self._rows.at(place), self._form, look.kind
        text.add(look.before)
        if row < 0 or kind is None or not self._has(row):
            text.add(form.nulls)
        elif look.has_floats and form.is_all_four:
            # As nearly all are; they have no time for one member after the other.
            text.add_listed(_AROUND_FOUR, self._floats[row % DEVICES], FLOAT_COLUMNS * (row // DEVICES))
        else:
            self._add_members(text, row, look, kind)
        text.add(look.after)

    def counts(self, place: int) -> Counts | None:
        row = self._rows.at(place)
        return self._readings.counts(row) if self._form.has_counts and row >= 0 and self._has(row) else None

    def _has(self, row: int) -> bool:
        return self._is_whole or self._readings.has(row)

    def _add_members(self, text: AsciiText, row: int, look: Look, kind: Kind) -> None:
        form = self._form
        found: list[object] = [None] * FLOAT_COLUMNS
        if not look.has_floats:
            found = [*self._readings.summary(row, kind, look.is_scalar)]
        if form.has_counts:
            found += self._readings.counts(row)
        for key, column in form.members:
            text.add(key)
            if look.has_floats and column < FLOAT_COLUMNS:
                # One by one, they would be written in other words.
                text.add_listed(("", ""), self._floats[row % DEVICES], FLOAT_COLUMNS * (row // DEVICES) + column)
            else:
                text.add(self._style.leaf(found[column]))
            text.add(", ")
