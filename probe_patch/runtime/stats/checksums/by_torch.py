"""The exclusive or in plain torch, for devices without kernels for it. Nothing waits for the device."""

import torch
from torch import Tensor

from probe_patch.runtime.stats.checksums.pending import Block
from probe_patch.runtime.stats.checksums.words import WORD_BYTES


def xor64(raw: Tensor, block: Block, row: int) -> None:
    """Put the exclusive or of the words of eight bytes of [n] uint8, n at least 1, into a word."""
    whole = raw.numel() // WORD_BYTES * WORD_BYTES
    last = torch.zeros(WORD_BYTES, dtype=torch.uint8, device=raw.device)
    last[: raw.numel() - whole] = raw[whole:]
    total = last.view(torch.int64)
    if whole:
        words = raw[:whole]
        # A view in another dtype must begin at one of its places.
        aligned = words if words.storage_offset() % WORD_BYTES == 0 else words.clone()
        total = total ^ _folded(aligned.view(torch.int64))
    block.words[row : row + 1] = total


def _folded(words: Tensor) -> Tensor:
    """[n] int64 to [1]."""
    while words.numel() > 1:
        half = words.numel() // 2
        folded = words[:half] ^ words[half : 2 * half]
        if words.numel() % 2:
            folded[0] ^= words[-1]
        words = folded
    return words
