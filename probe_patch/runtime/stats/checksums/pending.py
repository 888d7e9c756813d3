"""Checksums that are still on a device."""

from dataclasses import dataclass
from typing import Final, TypeAlias

import torch

from probe_patch.runtime.stats.checksums.polynomial import joined
from probe_patch.runtime.stats.checksums.words import ONES, rotated

ROWS_PER_BLOCK: Final = 4096


class Block:
    """Words on one device, each 0 or a checksum.

    Attributes:
        words: [ROWS_PER_BLOCK] int64.
        halves: the [ROWS_PER_BLOCK, 2] int32 view of it.
        read: what they held when they were read; None before.
    """

    def __init__(self, device: torch.device) -> None:
        # Zeros from the host are there when this returns, for kernels on any stream to add to.
        self.words = torch.zeros(ROWS_PER_BLOCK, dtype=torch.int64).to(device)
        self.halves = self.words.view(torch.int32).view(ROWS_PER_BLOCK, 2)
        self.read: list[int] | None = None

    def give_up(self, read: list[int]) -> None:
        """The words were read: the device memory is not needed any longer."""
        self.read = read
        del self.words, self.halves


@dataclass(frozen=True, slots=True)
class Part:
    """The checksum of ``size`` bytes: one of a block's words."""

    block: Block
    row: int
    size: int


@dataclass(frozen=True, slots=True)
class _Pending:
    """Of parts that lie one behind the other."""

    parts: list[Part]

    def value(self) -> int | None:
        """The checksum of all, once it was read; None where it could not be."""
        total, used = 0, 0
        for part in self.parts:
            if part.block.read is None:
                return None
            total = self._with(total, part.block.read[part.row] & ONES, used, part.size)
            used += part.size
        return total

    def _with(self, total: int, word: int, used: int, size: int) -> int:
        raise NotImplementedError


class PendingCrc32(_Pending):
    """zlib's CRC-32."""

    __slots__ = ()

    def _with(self, total: int, word: int, used: int, size: int) -> int:
        return joined(total, word, size) if used else word


class PendingXor64(_Pending):
    """The exclusive or of words of eight bytes."""

    __slots__ = ()

    def _with(self, total: int, word: int, used: int, size: int) -> int:
        return total ^ rotated(word, used)


Checksum: TypeAlias = int | PendingCrc32 | PendingXor64


def value_of(checksum: Checksum | None) -> int | None:
    """The checksum, where it was taken and, from a device, read."""
    return checksum if checksum is None or isinstance(checksum, int) else checksum.value()
