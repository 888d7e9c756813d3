"""Some of the numbers of one tensor, and only these: config.json's ``summary_mode`` as a list.

Everything stays on the tensor's device, as with ``reference.measure``, and is merged from pieces in the same way.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, TypeAlias

import torch
from torch import Tensor

from probe_patch.runtime.stats.kinds import Kind
from probe_patch.runtime.stats.reference import WIDEST, as_signed, chunks, merged, scaled_norm, widen

NumberName: TypeAlias = Literal["max", "min", "mean", "norm", "nan_count", "inf_count", "zero_count"]

INTEGER_COLUMNS: Final = 5
"""Exact max and min of integers, the counts of NaN, of infinities and of zeros."""

_FLOATS: Final = frozenset({Kind.FLOAT, Kind.COMPLEX})


class _Piece:
    """Some of the values, converted once for all the numbers that need it."""

    def __init__(self, chunk: Tensor, kind: Kind, accumulator: torch.dtype) -> None:
        self.chunk = chunk
        self.kind = kind
        self._accumulator = accumulator

    @cached_property
    def wide(self) -> Tensor:
        """For adding up: floats; of complex values, the magnitudes."""
        return widen(self.chunk, self.kind, self._accumulator)

    @cached_property
    def ordered(self) -> Tensor:
        """For comparing: ``wide`` or integers."""
        if self.kind in _FLOATS:
            return self.wide
        return self.chunk.view(torch.uint8) if self.kind is Kind.BOOL else as_signed(self.chunk, self.kind)

    @cached_property
    def classified(self) -> Tensor:
        """For telling NaN, infinities and zeros."""
        if self.kind is Kind.COMPLEX:
            # As they are: the magnitude of inf+nanj is inf. Half-precision ones have no such functions.
            return self.chunk.to(torch.complex64) if self.chunk.element_size() == 4 else self.chunk
        if self.kind is Kind.FLOAT:
            # Nor have eight-bit floats.
            return self.chunk.to(torch.float32) if self.chunk.element_size() == 1 else self.chunk
        return self.chunk.view(torch.int64) if self.kind is Kind.UNSIGNED64 else self.ordered

    def count(self, test: Callable[[Tensor], Tensor]) -> Tensor:
        return test(self.classified).sum(dtype=torch.int64)


@dataclass(frozen=True)
class _Reduction:
    """One number: of a piece, and of all pieces; its column among the floats, the integers or, by kind, either."""

    of: Callable[[_Piece], Tensor]
    whole: Callable[[list[Tensor], Tensor], Tensor]
    float_column: int | None
    integer_column: int | None

    def place(self, kind: Kind, floats: Tensor, integers: Tensor) -> Tensor:
        if self.integer_column is None or (self.float_column is not None and kind in _FLOATS):
            return floats[self.float_column]
        return integers[self.integer_column]


def _greatest(partials: list[Tensor], _: Tensor) -> Tensor:
    return merged(partials, Tensor.amax)


def _least(partials: list[Tensor], _: Tensor) -> Tensor:
    return merged(partials, Tensor.amin)


def _total(partials: list[Tensor], _: Tensor) -> Tensor:
    return merged(partials, Tensor.sum)


def _mean(partials: list[Tensor], values: Tensor) -> Tensor:
    return merged(partials, Tensor.sum) / values.numel()


def _whole_norm(partials: list[Tensor], values: Tensor) -> Tensor:
    return merged(partials, _norm_for(values.dtype))


def _norm_for(dtype: torch.dtype) -> Callable[[Tensor], Tensor]:
    return scaled_norm if dtype in WIDEST else torch.linalg.vector_norm


def _is_zero(values: Tensor) -> Tensor:
    return values == 0


_REDUCTIONS: Final[dict[NumberName, _Reduction]] = {
    "max": _Reduction(lambda piece: piece.ordered.amax(), _greatest, 0, 0),
    "min": _Reduction(lambda piece: piece.ordered.amin(), _least, 1, 1),
    "mean": _Reduction(lambda piece: piece.wide.sum(), _mean, 2, None),
    "norm": _Reduction(lambda piece: _norm_for(piece.chunk.dtype)(piece.wide), _whole_norm, 3, None),
    "nan_count": _Reduction(lambda piece: piece.count(torch.isnan), _total, None, 2),
    "inf_count": _Reduction(lambda piece: piece.count(torch.isinf), _total, None, 3),
    "zero_count": _Reduction(lambda piece: piece.count(_is_zero), _total, None, 4),
}

_EXTREMES: Final = frozenset({"max", "min"})
_ADDED: Final = frozenset({"mean", "norm"})


class ChosenNumbers:
    """Takes the place of ``reference.measure`` in a table with ``INTEGER_COLUMNS``; columns not chosen are 0."""

    def __init__(self, numbers: Collection[NumberName]) -> None:
        self._of_any = _reductions(frozenset(numbers))
        self._of_booleans = _reductions(frozenset(numbers) - _ADDED)
        # A scalar's four statistics are its value, for which its maximum stands in a table.
        value = {"max"} if (_EXTREMES | _ADDED) & frozenset(numbers) else set()
        self._of_scalars = _reductions(frozenset(numbers) - _EXTREMES - _ADDED | value)

    def __call__(self, values: Tensor, kind: Kind, floats: Tensor, integers: Tensor) -> None:
        """As ``reference.measure``, with ``integers`` [5]: the counts follow the extremes."""
        floats.zero_()
        integers.zero_()
        wanted = self._of_booleans if kind is Kind.BOOL else self._of_any if values.dim() else self._of_scalars
        partials: list[list[Tensor]] = [[] for _ in wanted]
        for chunk in chunks(values):
            piece = _Piece(chunk, kind, floats.dtype)
            for found, reduction in zip(partials, wanted, strict=True):
                found.append(reduction.of(piece))
        for found, reduction in zip(partials, wanted, strict=True):
            reduction.place(kind, floats, integers).copy_(reduction.whole(found, values))


def _reductions(numbers: Collection[str]) -> list[_Reduction]:
    return [reduction for name, reduction in _REDUCTIONS.items() if name in numbers]
