"""The bytes of a tensor in row-major order, as views where that is possible."""

from collections.abc import Iterator
from typing import Final

import torch
from torch import Tensor

PIECE_ELEMENTS: Final = 1 << 22
"""Bounds the memory that values with gaps or repeats are copied to: 32 MiB of float64."""


def is_flat(values: Tensor) -> bool:
    """Whether the bytes lie in memory as they are to be read."""
    return values.is_contiguous() and not values.is_conj() and not values.is_neg()


def pieces(values: Tensor, most_elements: int) -> Iterator[Tensor]:
    """Views of at most so many elements each, in row-major order."""
    if values.is_contiguous():
        values = values.view(-1)
    if values.numel() <= most_elements:
        yield values
        return
    rows = max(1, values.shape[0] * most_elements // values.numel())
    for piece in torch.split(values, rows):
        yield from pieces(piece[0] if rows == 1 else piece, most_elements)


def flat(values: Tensor) -> Tensor:
    """The values with their bytes in row-major order: themselves, or a copy on their device."""
    return values.resolve_conj().resolve_neg().contiguous()


def flat_pieces(values: Tensor) -> Iterator[Tensor]:
    """The values in pieces that are ``flat``: one if they are so, else copies that are not too large."""
    if is_flat(values):
        if values.numel():
            yield values
        return
    for piece in pieces(values, PIECE_ELEMENTS):
        if piece.numel():
            yield flat(piece)


def raw(values: Tensor) -> Tensor:
    """The bytes of ``flat`` values as a view, [n] uint8."""
    # A dimension of length 1 may have any stride, which a view in another dtype would not take.
    return values.as_strided((values.numel(),), (1,)).view(torch.uint8)
