"""Checksums on an accelerator, by Triton: one launch each, and nothing waits for the device.

All that a launch needs is there beforehand, so that it may be captured in a CUDA graph. A replay does not put its
checksums into words of their own but adds them to those of the capture, which must be read and 0 again by then.
"""

from contextlib import nullcontext
from functools import cache
from typing import Final

import torch
from torch import Tensor

from probe_patch.runtime.stats.checksums import kernels
from probe_patch.runtime.stats.checksums.pending import Block
from probe_patch.runtime.stats.checksums.polynomial import byte_tables, power_of_x, powers

CRC_BLOCK: Final = 1024
XOR_BLOCK: Final = 2048

MOST_PROGRAMS: Final = 1024

# A program reads at least so many blocks before another one is worth its start.
_FEW_ROUNDS: Final = 4

_WORD: Final = 4
_LONG_WORD: Final = 8


class TritonChecksums:
    """Kernels, and the tables they look up, on one device."""

    def __init__(self, device: torch.device) -> None:
        # Triton launches on the current device, which need not be this one.
        self._current = nullcontext() if device.type == "cpu" else torch.get_device_module(device).device(device)
        sizes = [1 << exponent for exponent in range(MOST_PROGRAMS.bit_length())]
        numbers = [_factors(programs) for programs in sizes]
        numbers += [byte_tables(power_of_x(8))[0], powers(power_of_x(32), CRC_BLOCK + 1)[:0:-1]]
        numbers.append(powers(power_of_x(32 * CRC_BLOCK), MOST_PROGRAMS))
        # One copy; beyond 2**31 - 1 as negative numbers.
        flat = [number - (number >> 31 << 32) for table in numbers for number in table]
        constants = torch.tensor(flat, dtype=torch.int32).to(device)
        *factors, self._byte, self._lanes, self._programs = torch.split(constants, [len(table) for table in numbers])
        self._factors = dict(zip(sizes, factors, strict=True))

    def crc32(self, raw: Tensor, block: Block, row: int) -> None:
        """Put zlib's CRC-32 of [n] uint8, n at least 1, into a word that holds 0."""
        head, words, tail = split(raw, _WORD)
        count = words.numel()
        programs = _programs(count, CRC_BLOCK)
        rounds = max(1, -(-count // (programs * CRC_BLOCK)))
        tables = (self._byte, self._factors[programs], self._lanes, self._programs)
        with self._current:
            kernels.crc32_kernel[(programs,)](
                raw, words, block.halves, row, *tables, head, count, tail, rounds, BLOCK=CRC_BLOCK
            )

    def xor64(self, raw: Tensor, block: Block, row: int) -> None:
        """Put the exclusive or of the words of eight bytes of [n] uint8, n at least 1, into a word that holds 0."""
        head, words, tail = split(raw, _LONG_WORD)
        count = words.numel()
        programs = _programs(count, XOR_BLOCK)
        rounds = count // (programs * XOR_BLOCK)
        with self._current:
            kernels.xor64_kernel[(programs,)](raw, words, block.words, row, head, count, tail, rounds, BLOCK=XOR_BLOCK)


def split(raw: Tensor, word: int) -> tuple[int, Tensor, int]:
    """How many bytes come before the first aligned word of ``word`` bytes, the words, and how many bytes come after."""
    size = raw.numel()
    head = min(-raw.data_ptr() % word, size)
    words = (size - head) // word
    dtype = torch.int32 if word == _WORD else torch.int64
    # No words have no aligned place, which a view must have.
    inside = raw[head : head + words * word].view(dtype) if words else raw.new_empty(0, dtype=dtype)
    return head, inside, size - head - words * word


def _programs(words: int, block: int) -> int:
    """A power of two: for each there is a table."""
    wanted = words // (block * _FEW_ROUNDS)
    return min(MOST_PROGRAMS, 1 << max(0, wanted - 1).bit_length()) if wanted else 1


@cache
def _factors(programs: int) -> list[int]:
    """For ``kernels.crc32_kernel`` by so many programs."""
    return [number for table in byte_tables(power_of_x(32 * CRC_BLOCK * programs)) for number in table]
