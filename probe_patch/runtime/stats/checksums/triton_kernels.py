"""Checksums on an accelerator, by Triton: one launch each, and nothing waits for the device.

All that a launch needs is there beforehand, so that it may be captured in a CUDA graph. A replay does not put its
checksums into words of their own but adds them to those of the capture, which must be read and 0 again by then.
"""

from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain
from typing import Final, NamedTuple

import torch
from torch import Tensor

from probe_patch.runtime.stats.checksums import kernels
from probe_patch.runtime.stats.checksums.pending import Block
from probe_patch.runtime.stats.checksums.polynomial import byte_tables, power_of_x, powers


@dataclass(frozen=True)
class Sizes:
    """How many words one program looks at together, and how many programs there are at most: powers of two."""

    crc_block: int
    xor_block: int
    most_programs: int


USUAL: Final = Sizes(crc_block=1024, xor_block=2048, most_programs=1024)

# A program reads at least so many blocks before another one is worth its start.
_FEW_ROUNDS: Final = 4


class TritonChecksums:
    """Kernels, and the tables they look up, on one device."""

    def __init__(self, device: torch.device, sizes: Sizes = USUAL) -> None:
        self._sizes = sizes
        # Triton launches on the current device, which need not be this one.
        self._current = nullcontext() if device.type == "cpu" else torch.get_device_module(device).device(device)
        block, most = sizes.crc_block, sizes.most_programs
        programs = [1 << exponent for exponent in range(most.bit_length())]
        numbers = [list(chain(*byte_tables(power_of_x(32 * block * count)))) for count in programs]
        numbers += [byte_tables(power_of_x(8))[0], powers(power_of_x(32), block + 1)[:0:-1]]
        numbers.append(powers(power_of_x(32 * block), most))
        # One copy; beyond 2**31 - 1 as negative numbers.
        flat = [number - (number >> 31 << 32) for table in numbers for number in table]
        constants = torch.tensor(flat, dtype=torch.int32).to(device)
        *factors, self._byte, self._lanes, self._powers = torch.split(constants, [len(table) for table in numbers])
        self._factors = dict(zip(programs, factors, strict=True))

    def crc32(self, raw: Tensor, block: Block, row: int) -> None:
        """Put zlib's CRC-32 of [n] uint8, n at least 1, into a word that holds 0."""
        bounds, words = split(raw, torch.int32)
        size = self._sizes.crc_block
        programs = self._programs_for(bounds.words, size)
        rounds = max(1, -(-bounds.words // (programs * size)))
        tables = (self._byte, self._factors[programs], self._lanes, self._powers)
        with self._current:
            kernels.crc32_kernel[(programs,)](raw, words, block.halves, row, *tables, *bounds, rounds, BLOCK=size)

    def xor64(self, raw: Tensor, block: Block, row: int) -> None:
        """Put the exclusive or of the words of eight bytes of [n] uint8, n at least 1, into a word that holds 0."""
        bounds, words = split(raw, torch.int64)
        size = self._sizes.xor_block
        programs = self._programs_for(bounds.words, size)
        rounds = bounds.words // (programs * size)
        with self._current:
            kernels.xor64_kernel[(programs,)](raw, words, block.words, row, *bounds, rounds, BLOCK=size)

    def _programs_for(self, words: int, size: int) -> int:
        """A power of two: for each there is a table."""
        wanted = max(1, words // (size * _FEW_ROUNDS))
        return min(self._sizes.most_programs, 1 << (wanted - 1).bit_length())


class Bounds(NamedTuple):
    """Where aligned words lie among bytes.

    Attributes:
        head: how many bytes come before the first.
        behind: the place of the first byte after the last.
        tail: how many bytes follow from there.
    """

    head: int
    words: int
    behind: int
    tail: int


def split(raw: Tensor, word: torch.dtype) -> tuple[Bounds, Tensor]:
    """Where the aligned words lie in [n] uint8, and they themselves, [words] of the dtype."""
    size, width = raw.numel(), word.itemsize
    head = min(-raw.data_ptr() % width, size)
    words = (size - head) // width
    behind = head + words * width
    # No words have no aligned place, which a view must have.
    inside = raw[head:behind].view(word) if words else raw.new_empty(0, dtype=word)
    return Bounds(head, words, behind, size - behind), inside
