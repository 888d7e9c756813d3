"""The code that gets inserted, read from ``templates/`` and filled in.

A template is Python with ``__NAME__`` where a value goes. Values are written with ``ascii()``, so whatever a path or
a phase holds (quotes, newlines, surrogates) stays inside its literal; a template never holds more than these literals
and plain text.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import TypeAlias

from probe_patch.resources import data_folder

Value: TypeAlias = str | tuple[str, ...] | None

_PLACE = re.compile(r"\b__([A-Z]+)__\b")


@cache
def _read(name: str) -> str:
    return (data_folder("templates") / name).read_text(encoding="ascii")


def render(name: str, values: Mapping[str, Value]) -> str:
    """The lines of template ``name`` (a path below ``templates/``), without its own leading comment lines.

    Raises:
        KeyError: the template has a place for which there is no value.
    """
    lines = _read(name).splitlines()
    while lines and lines[0].startswith("#:"):
        del lines[0]
    return _PLACE.sub(lambda place: ascii(values[place[1]]), "\n".join(lines).strip("\n"))
