"""JSON as msProbe's readers expect it, or as the standard has it.

They part in the floats that are no numbers: Python writes them as the bare tokens ``NaN``, ``Infinity`` and
``-Infinity``, which the standard does not know. Strictly they are the strings of the same letters.
"""

from __future__ import annotations

import math
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, Final

from probe_patch.runtime.ascii_text import Listed

if TYPE_CHECKING:
    from array import array

try:
    import orjson
except ImportError:
    # Without it writing floats takes five times as long.
    orjson = None  # type: ignore[assignment]
try:
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment]

string_text: Final = encode_basestring_ascii
"""A string as JSON."""

_MOST_KNOWN: Final = 256
"""Floats: those that code has for constants come again and again."""

_NAMES: Final = {math.inf: "Infinity", -math.inf: "-Infinity"}


class JsonStyle:
    """How a dump's values are written.

    Args:
        quote: stands around the name of a float that is no number.
    """

    __slots__ = ("_known", "_quote")

    def __init__(self, quote: str) -> None:
        self._quote = quote
        self._known: dict[float, str] = {}

    def number(self, value: float) -> str:
        """One float."""
        if not math.isfinite(value):
            return f"{self._quote}{_name(value)}{self._quote}"
        return repr(value) if type(value) is float else float.__repr__(value)

    def numbers(self, values: array[float]) -> Listed:
        """Many floats, of type code ``d``."""
        if orjson is None:
            return Listed(f"[{','.join([self.number(value) for value in values])}]".encode(), len(values))
        listed = Listed(_with_nulls(values), len(values))
        for place in listed.nulls:
            listed.replace(place, self.number(values[place]))
        return listed

    def leaf(self, value: object) -> str:
        """A value that holds no others.

        Raises:
            TypeError: JSON has no form for it.
        """
        if type(value) is str:
            return string_text(value)
        if type(value) is int:
            return str(value)
        if type(value) is float:
            return self._constant(value)
        if value is None:
            return "null"
        if value is True or value is False:
            return "true" if value else "false"
        if isinstance(value, str):
            return string_text(value)
        if isinstance(value, int):
            return int.__repr__(value)
        if isinstance(value, float):
            return self.number(value)
        raise TypeError(f"{type(value).__name__} has no form in JSON")

    def _constant(self, value: float) -> str:
        # Zeros are equal to each other, and are written with their sign.
        text = self._known.get(value) if value else None
        if text is None:
            text = self.number(value)
            if value:
                if len(self._known) == _MOST_KNOWN:
                    self._known.clear()
                self._known[value] = text
        return text


def _with_nulls(values: array[float]) -> bytes:
    """As JSON, with null in the place of what is no number."""
    # An object of Python's for each takes two thirds as long again.
    if numpy is None or not values:
        return orjson.dumps(values.tolist())
    return orjson.dumps(numpy.frombuffer(values), option=orjson.OPT_SERIALIZE_NUMPY)


BARE: Final = JsonStyle("")
"""As msProbe writes it."""

STRICT: Final = JsonStyle('"')
"""As every JSON reader takes it."""


def named_floats(value: object) -> object:
    """The value with strings in the place of floats that are no numbers.

    Raises:
        TypeError: JSON has no form for it.
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else _name(value)
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, dict):
        return {key: named_floats(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [named_floats(part) for part in value]
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _name(value: float) -> str:
    return _NAMES.get(value, "NaN")
