"""Statistics on the host by torch, a piece that fits the cache at a time: where the compiled library is missing."""

import math
from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor

from probe_patch.runtime.stats.backends import reference
from probe_patch.runtime.stats.kinds import Kind
from probe_patch.runtime.stats.rows import EXTREMES, Block

# Fewer than torch spreads over threads: many small parallel regions collapse where other processes want the cores too.
_PIECE: Final = 32_000

_NARROW: Final = frozenset({torch.float32, torch.bfloat16, torch.float16})

# Below, squares may have vanished from float32.
_LEAST_SQUARES: Final = 1e-25


class Chunked:
    """Contiguous floats of up to 32 bits in float32 pieces, whose numbers are put together in float64; the rest, and
    what has no squares in float32, as the reference does.
    """

    name = "cpu"
    accumulator = torch.float64

    def __init__(self, counts: bool, shortcoming: str | None = None) -> None:
        self._counts = counts
        self.shortcoming = shortcoming

    def measure(self, values: Sequence[Tensor], kinds: Sequence[Kind], block: Block, first: int) -> None:
        """See ``Backend.measure``."""
        for number, (tensor, kind) in enumerate(zip(values, kinds, strict=True), first):
            is_narrow = tensor.dtype in _NARROW and tensor.is_contiguous()
            numbers = _narrow_numbers(tensor) if is_narrow else None
            if numbers is None:
                reference.measure(tensor, kind, block.floats[number], block.integers[number])
            else:
                block.floats[number] = torch.tensor(numbers, dtype=torch.float64)
            if self._counts:
                block.integers[number, EXTREMES:] = reference.count(tensor, kind)


def _narrow_numbers(values: Tensor) -> tuple[float, float, float, float] | None:
    """Max, min, mean and L2 norm; None where float32 cannot hold a square, or a value is not finite."""
    flat = values.view(-1)
    room = min(_PIECE, flat.numel())
    wide, squares = torch.empty(2, room, dtype=torch.float32)
    found: list[Tensor] = []
    for piece in torch.split(flat, _PIECE):
        if piece.dtype is not torch.float32:
            piece = wide[: piece.numel()].copy_(piece)
        found += torch.aminmax(piece)
        found += (piece.sum(), torch.mul(piece, piece, out=squares[: piece.numel()]).sum())
    numbers = torch.stack(found).tolist()
    lows, highs, sums, sums_of_squares = (numbers[start::4] for start in range(4))
    extremes = zip(lows, highs, strict=True)
    if not all(
        _LEAST_SQUARES <= total < math.inf or low == high == 0
        for total, (low, high) in zip(sums_of_squares, extremes, strict=True)
    ):
        return None
    return max(highs), min(lows), math.fsum(sums) / flat.numel(), math.sqrt(math.fsum(sums_of_squares))
