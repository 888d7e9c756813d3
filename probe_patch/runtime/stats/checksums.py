"""Checksums of the raw bytes of one tensor, in row-major order, as msProbe's dumps have them (26.2.0).

They are taken at once, since the run may overwrite the values, and on the host: the bytes are copied there, piece by
piece, so that each tensor waits for its device.
"""

import ctypes
import zlib
from collections.abc import Iterator
from typing import Final

import torch
from torch import Tensor

from probe_patch.runtime.stats.backends import reference

_FEW_BYTES: Final = 4096


def crc32(values: Tensor) -> str:
    """zlib's CRC-32 of the bytes as eight hexadecimal digits; of none, ``00000000``.

    Args:
        values: plain and readable, of any dtype, shape and strides; see ``kinds.is_readable``.
    """
    checksum = 0
    for piece in _pieces(values):
        checksum = zlib.crc32(_raw(_bytes(piece)), checksum)
    return f"{checksum:08x}"


def xor64(values: Tensor) -> str | None:
    """The exclusive or of the bytes as little-endian words of eight, zeros behind them, in ``0x%016x`` form.

    Of no bytes None, as msProbe has it.

    Args:
        values: as for ``crc32``.
    """
    if values.numel() == 0:
        return None
    word, used = 0, 0
    for piece in _pieces(values):
        found = _bytes(piece)
        # A piece may begin and end inside a word.
        word ^= _folded(int.from_bytes(_raw(_few(found)), "little") << used % 8 * 8)
        used += found.numel()
    return f"0x{word:016x}"


def _few(found: Tensor) -> Tensor:
    """Bytes with the same exclusive or, but few: Python's whole numbers are quick only while they are short."""
    if found.numel() <= _FEW_BYTES:
        return found
    padded = torch.zeros(found.numel() + -found.numel() % 8, dtype=torch.uint8)
    padded[: found.numel()] = found
    words = padded.view(torch.int64)
    while words.numel() * 8 > _FEW_BYTES:
        half = (words.numel() + 1) // 2
        words[: words.numel() - half].bitwise_xor_(words[half:])
        words = words[:half]
    return words.view(torch.uint8)


def _folded(number: int) -> int:
    """The exclusive or of its words of 64 bits."""
    words = -(-number.bit_length() // 64)
    while words > 1:
        words = (words + 1) // 2
        upper = number >> 64 * words
        number ^= upper ^ upper << 64 * words
    return number


def _pieces(values: Tensor) -> Iterator[Tensor]:
    """Views of at most ``reference.CHUNK_ELEMENTS`` elements in row-major order."""
    if values.is_contiguous():
        values = values.view(-1)
    if values.numel() <= reference.CHUNK_ELEMENTS:
        yield values
        return
    rows = max(1, values.shape[0] * reference.CHUNK_ELEMENTS // values.numel())
    for piece in torch.split(values, rows):
        yield from _pieces(piece[0] if rows == 1 else piece)


def _bytes(piece: Tensor) -> Tensor:
    """The bytes of a piece on the host, [n] uint8."""
    whole = piece.resolve_conj().resolve_neg().cpu().contiguous()
    # A dimension of length 1 may have any stride, which a view in another dtype would not take.
    return whole.as_strided((whole.numel(),), (1,)).view(torch.uint8)


def _raw(found: Tensor) -> bytes:
    """A copy of such bytes, without numpy, which torch can do without."""
    return ctypes.string_at(found.data_ptr(), found.numel())
