"""The code that gets inserted, read from ``templates/`` and filled in.

A template is Python with ``__NAME__`` where a value goes. Values are written with ``ascii()``, so whatever a path or
a phase holds (quotes, newlines, surrogates) stays inside its literal; an ``Identifier`` goes in bare, and can be
nothing else. A template never holds more than these and plain text.
"""

import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from probe_patch.resources import data_folder


@dataclass(frozen=True)
class Identifier:
    """A Python name in ASCII.

    Raises:
        ValueError: it is none.
    """

    name: str

    def __post_init__(self) -> None:
        if not (self.name.isascii() and self.name.isidentifier()) or keyword.iskeyword(self.name):
            raise ValueError(f"{self.name!r} is no Python name")


Value: TypeAlias = str | tuple[str, ...] | Identifier | None

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
    return _PLACE.sub(lambda place: _written(values[place[1]]), "\n".join(lines).strip("\n"))


def _written(value: Value) -> str:
    return value.name if isinstance(value, Identifier) else ascii(value)
