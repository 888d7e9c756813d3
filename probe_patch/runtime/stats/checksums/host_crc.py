"""CRC-32 of tensors on the host, read where they are, by the quickest library that is installed."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Final, TypeAlias

from probe_patch.runtime.stats.checksums.host_memory import memory
from probe_patch.runtime.stats.checksums.layout import PIECE_ELEMENTS, flat, is_flat, pieces

if TYPE_CHECKING:
    from torch import Tensor

    from probe_patch.runtime.stats.checksums.host_bytes import HostBytes

Crc32: TypeAlias = Callable[[memoryview, int], int]

LIBRARIES: Final = ("isal.isal_zlib", "zlib_ng.zlib_ng", "zlib")
"""Each has a ``crc32`` of zlib's polynomial; the first two are three times as quick."""


def quickest_crc32() -> Crc32:
    """Of the first of ``LIBRARIES`` that is installed."""
    for library in LIBRARIES:
        try:
            found: Crc32 = import_module(library).crc32
        except Exception:
            # Even one that is installed may not load on this machine.
            continue
        return found
    return zlib.crc32


_crc32: Crc32 = quickest_crc32()


def _host_bytes() -> HostBytes | None:
    try:
        from probe_patch.runtime.stats.checksums.host_bytes import HostBytes

        return HostBytes()
    except (ImportError, AttributeError):
        return None


_bytes: HostBytes | None = _host_bytes()


def crc32(values: Tensor) -> int:
    """zlib's CRC-32 of the bytes; of none, 0.

    Args:
        values: plain, readable and on the host; of any dtype, shape and strides.
    """
    whole = None if _bytes is None else _bytes.of(values)
    if whole is not None:
        return _crc32(whole, 0)
    if is_flat(values):
        size = values.nbytes
        return _crc32(memory(values.data_ptr(), size), 0) if size else 0
    return crc32_by_pieces(values)


def crc32_by_pieces(values: Tensor) -> int:
    """The same of values on any device: they are copied piece by piece, to the host too."""
    checksum = 0
    for piece in pieces(values, PIECE_ELEMENTS):
        whole = flat(piece.cpu())
        if size := whole.nbytes:
            checksum = _crc32(memory(whole.data_ptr(), size), checksum)
    return checksum
