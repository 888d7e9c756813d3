"""Checksums of the raw bytes of one tensor, in row-major order, as msProbe's dumps have them (26.2.0).

They are taken at once, since the run may overwrite the values, and on the host: the bytes are copied there, piece by
piece, so that each tensor waits for its device.
"""

import zlib
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from probe_patch.runtime.stats import reference


def crc32(values: Tensor) -> str:
    """zlib's CRC-32 of the bytes as eight hexadecimal digits; of none, ``00000000``.

    Args:
        values: plain and readable, of any dtype, shape and strides; see ``kinds.is_readable``.
    """
    checksum = 0
    for piece in _pieces(values):
        checksum = zlib.crc32(_bytes(piece).data, checksum)
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
        before = used % 8
        used += found.size
        padded = np.pad(found, (before, -used % 8))
        word ^= int(np.bitwise_xor.reduce(padded.view("<u8")))
    return f"0x{word:016x}"


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


def _bytes(piece: Tensor) -> "np.ndarray[tuple[int], np.dtype[np.uint8]]":
    whole = piece.resolve_conj().resolve_neg().cpu().contiguous()
    # A dimension of length 1 may have any stride, which a view in another dtype would not take.
    flat = whole.as_strided((whole.numel(),), (1,)).view(torch.uint8)
    found: np.ndarray[tuple[int], np.dtype[np.uint8]] = flat.numpy()
    return found
