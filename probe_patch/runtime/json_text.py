"""JSON as msProbe's readers expect it, or as the standard has it.

They part in the floats that are no numbers: Python writes them as the bare tokens ``NaN``, ``Infinity`` and
``-Infinity``, which the standard does not know. Strictly they are the strings of the same letters.
"""

import json
import math
from collections.abc import Callable
from typing import Final, TypeAlias

Expand: TypeAlias = Callable[[object], object]
"""Turns what JSON has no form for into what it has one for, or raises TypeError."""

JsonText: TypeAlias = Callable[[object, Expand], str]
"""Writes a value on one line."""

_NAMES: Final = {math.inf: "Infinity", -math.inf: "-Infinity"}


def bare_tokens(value: object, expand: Expand) -> str:
    """As msProbe writes it."""
    return json.dumps(value, default=expand)


def strict(value: object, expand: Expand) -> str:
    """As every JSON reader takes it."""
    try:
        return json.dumps(value, default=expand, allow_nan=False)
    except ValueError:
        return json.dumps(named_floats(value, expand), allow_nan=False)


def json_text(is_strict: bool) -> JsonText:
    """The one that config.json's ``strict_json`` asks for."""
    return strict if is_strict else bare_tokens


def named_floats(value: object, expand: Expand) -> object:
    """The value with strings in the place of floats that are no numbers."""
    if isinstance(value, float):
        return value if math.isfinite(value) else _NAMES.get(value, "NaN")
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, dict):
        return {key: named_floats(part, expand) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [named_floats(part, expand) for part in value]
    return named_floats(expand(value), expand)


def no_form(value: object) -> object:
    """Expands nothing.

    Raises:
        TypeError: always.
    """
    raise TypeError(f"{type(value).__name__} has no form in JSON")
