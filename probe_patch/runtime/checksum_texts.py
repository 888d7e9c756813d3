"""The checksums of a dump as they stand in its JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probe_patch.runtime.capture.forms import Taken
from probe_patch.runtime.stats.checksums.pending import value_of

if TYPE_CHECKING:
    from probe_patch.runtime.capture.forms import Look
    from probe_patch.runtime.stats.checksums.pending import Checksum
    from probe_patch.runtime.stats.rows import Counts


class CrcTexts(Taken):
    """CRC-32s at the end of records that hold something else besides.

    Args:
        checksums: of each tensor; None where it has none.
    """

    __slots__ = ("_checksums", "_numbers")

    def __init__(self, numbers: Taken, checksums: list[Checksum | None]) -> None:
        self._numbers = numbers
        self._checksums = checksums

    def text(self, place: int, look: Look, end: str) -> str:
        return self._numbers.text(place, look, end + crc_member(value_of(self._checksums[place])))

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

    def text(self, place: int, look: Look, end: str) -> str:
        return f"{look.before}{xor_member(value_of(self._checksums[place]))}{look.after}{end}}}"


def crc_member(value: int | None) -> str:
    """A CRC-32 as the last member of a record; null for None."""
    return ', "md5": null' if value is None else f', "md5": "{value:08x}"'


def xor_member(value: int | None) -> str:
    """A checksum of eight bytes as the member where other records have their numbers; null for None."""
    return '"md5": null, ' if value is None else f'"md5": "{value:#018x}", '
