"""The checksums of a dump as they stand in its JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from probe_patch.runtime.capture.forms import Taken
from probe_patch.runtime.stats.checksums.pending import value_of

if TYPE_CHECKING:
    from probe_patch.runtime.ascii_text import AsciiText
    from probe_patch.runtime.capture.forms import Look
    from probe_patch.runtime.stats.checksums.pending import Checksum
    from probe_patch.runtime.stats.rows import Counts

NULL_CRC: Final = ', "md5": null'
"""At the end of a record without a CRC-32."""

NULL_XOR: Final = '"md5": null, '
"""In a record without a checksum of eight bytes, where others have their numbers."""


class CrcTexts(Taken):
    """CRC-32s at the end of records that hold something else besides.

    Args:
        checksums: of each tensor; None where it has none.
    """

    __slots__ = ("_checksums", "_numbers")

    def __init__(self, numbers: Taken, checksums: list[Checksum | None]) -> None:
        self._numbers = numbers
        self._checksums = checksums

    def add(self, text: AsciiText, place: int, look: Look) -> None:
        self._numbers.add(text, place, look)

    def add_last(self, text: AsciiText, place: int) -> None:
        value = self._checksums[place]
        # As nearly all are on a host.
        if type(value) is not int:
            value = value_of(value)
        if value is None:
            text.add(NULL_CRC)
        else:
            text.add(', "md5": "')
            text.add_hexadecimal(value, 8)
            text.add('"')

    def counts(self, place: int) -> Counts | None:
        return self._numbers.counts(place)


class XorTexts(Taken):
    """Checksums in the place of numbers.

    Args:
        checksums: of each tensor; None where it has none.
    """

    __slots__ = ("_checksums",)

    def __init__(self, checksums: list[Checksum | None]) -> None:
        self._checksums = checksums

    def add(self, text: AsciiText, place: int, look: Look) -> None:
        value = value_of(self._checksums[place])
        text.add(look.before)
        if value is None:
            text.add(NULL_XOR)
        else:
            text.add('"md5": "0x')
            text.add_hexadecimal(value, 16)
            text.add('", ')
        text.add(look.after)
