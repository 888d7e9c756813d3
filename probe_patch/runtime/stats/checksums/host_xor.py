"""The exclusive or of tensors on the host, read where they are: by numpy where it is installed, else by torch."""

from collections.abc import Callable
from importlib import import_module
from typing import Final, TypeAlias

import torch
from torch import Tensor

from probe_patch.runtime.stats.checksums.host_memory import memory
from probe_patch.runtime.stats.checksums.layout import flat_pieces
from probe_patch.runtime.stats.checksums.words import WORD_BYTES, folded, rotated

XorOfWords: TypeAlias = Callable[[int, int], int]
"""The exclusive or of so many words from an address on."""

# While they are short, Python's whole numbers are quicker than any call into a library.
_FEW_BYTES: Final = 256

# 128 KiB stay in a core's cache while the rest is folded into them; then folding in halves costs no more.
_FOLD: Final = 1 << 14
_FEW_WORDS: Final = 1 << 7


def by_numpy() -> XorOfWords:
    """
    Raises:
        ImportError: numpy is not installed.
    """
    numpy = import_module("numpy")
    from_buffer, reduce, dtype = numpy.frombuffer, numpy.bitwise_xor.reduce, numpy.dtype("<u8")

    def xor_of_words(address: int, words: int) -> int:
        return int(reduce(from_buffer(memory(address, words * WORD_BYTES), dtype)))

    return xor_of_words


def by_torch(address: int, words: int) -> int:
    """Nearly as quick while there are many words; see ``XorOfWords``."""
    values = torch.frombuffer(memory(address, words * WORD_BYTES), dtype=torch.int64)
    if words > _FEW_WORDS:
        first, *others = torch.split(values, _FOLD)
        values = first.clone()
        for part in others:
            values[: part.numel()].bitwise_xor_(part)
    while values.numel() > _FEW_WORDS:
        half = (values.numel() + 1) // 2
        values[: values.numel() - half].bitwise_xor_(values[half:])
        values = values[:half]
    size = values.numel() * WORD_BYTES
    return folded(int.from_bytes(memory(values.data_ptr(), size), "little"), size)


def quickest_xor() -> XorOfWords:
    """``by_numpy``, or ``by_torch`` where there is none."""
    try:
        return by_numpy()
    except Exception:
        return by_torch


_xor_of_words: XorOfWords = quickest_xor()


def xor64(values: Tensor) -> int:
    """The exclusive or of the bytes as little-endian words of eight, zeros behind them; of none, 0.

    Args:
        values: plain, readable and on the host; of any dtype, shape and strides.
    """
    word, used = 0, 0
    for piece in flat_pieces(values):
        # A piece may begin inside a word.
        word ^= rotated(_xor_of_flat(piece), used) if used else _xor_of_flat(piece)
        used += piece.nbytes
    return word


def _xor_of_flat(values: Tensor) -> int:
    size = values.nbytes
    address = values.data_ptr()
    if size <= _FEW_BYTES:
        return folded(int.from_bytes(memory(address, size), "little"), size)
    words, rest = divmod(size, WORD_BYTES)
    word = _xor_of_words(address, words)
    return word ^ int.from_bytes(memory(address + size - rest, rest), "little") if rest else word
