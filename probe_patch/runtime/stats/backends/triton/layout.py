"""How a tensor's elements lie in memory, as far as it matters to a reduction, in which their order does not."""

from collections.abc import Sequence
from dataclasses import dataclass

_ROW_DIMENSIONS = 3


@dataclass(frozen=True)
class Dense:
    """``count`` elements side by side, each of which stands for ``weight`` of the tensor's."""

    count: int
    weight: int


@dataclass(frozen=True)
class Strided:
    """Rows of ``columns`` elements, ``stride0`` apart; rows numbered along up to three dimensions, the first the
    quickest. Strides count elements.

    Attributes:
        rows: how many in all.
        sizes: of the first two of the dimensions.
        strides: of the three.
        weight: how many of the tensor's elements each of these stands for.
    """

    rows: int
    columns: int
    stride0: int
    sizes: tuple[int, int]
    strides: tuple[int, int, int]
    weight: int

    @property
    def count(self) -> int:
        return self.rows * self.columns


def layout_of(shape: Sequence[int], strides: Sequence[int]) -> Dense | Strided | None:
    """Of a tensor with at least one element: its dimensions merged where they continue each other, and those along
    which it repeats itself told apart. None if more than four are left.
    """
    weight = 1
    found: list[tuple[int, int]] = []
    for stride, size in sorted(zip(strides, shape, strict=True)):
        if stride == 0:
            weight *= size
        elif size == 1:
            continue
        elif found and stride == found[-1][0] * found[-1][1]:
            found[-1] = (found[-1][0], found[-1][1] * size)
        else:
            found.append((stride, size))
    if not found:
        return Dense(1, weight)
    (stride0, columns), *outer = found
    if not outer and stride0 == 1:
        return Dense(columns, weight)
    if len(outer) > _ROW_DIMENSIONS:
        return None
    (stride1, size1), (stride2, size2), (stride3, size3) = outer + [(0, 1)] * (_ROW_DIMENSIONS - len(outer))
    rows = size1 * size2 * size3
    return Strided(rows, columns, stride0, (size1, size2), (stride1, stride2, stride3), weight)
