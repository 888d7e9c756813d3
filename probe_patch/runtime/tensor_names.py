"""File names of saved tensors: ``{entry}.{category}.{path}.pt``, as msProbe names them (26.2.0)."""

import re
import zlib
from typing import Final

_SUFFIX: Final = ".pt"

# What msProbe's readers take in a file name; a path's separator is not among them.
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.:-]")

_LONGEST: Final = 255
"""Bytes of a name on the usual file systems."""


class TensorNames:
    """The names given out in one dump: each is a file name, and none is given twice."""

    def __init__(self) -> None:
        self._given: dict[str, int] = {}

    def name(self, place: str) -> str:
        """The file name of what stands at this place.

        Keys can be such that two places read the same, as ``a.b`` and ``b`` inside ``a`` do; the second is then
        numbered.
        """
        stem = _safe(place)
        number = self._given[stem] = self._given.get(stem, 0) + 1
        return f"{stem}{_SUFFIX}" if number == 1 else self.name(f"{stem}-{number}")


def _safe(place: str) -> str:
    """The place itself where it is a file name; else what of it is, with a checksum that keeps it apart from others."""
    safe = _UNSAFE.sub("_", place)
    longest = _LONGEST - len(_SUFFIX)
    if safe == place and len(safe) <= longest:
        return place
    checksum = f"-{zlib.crc32(place.encode(errors='surrogatepass')):08x}"
    return safe[: longest - len(checksum)] + checksum
