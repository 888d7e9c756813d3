from collections import Counter
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from probe_patch.runtime.stats.backends.triton.layout import Dense, Strided, layout_of

SIZES_AND_STRIDES = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 12)), max_size=5)


def offsets(shape: list[int], strides: list[int]) -> Counter[int]:
    places = product(*(range(size) for size in shape))
    return Counter(sum(i * stride for i, stride in zip(place, strides, strict=True)) for place in places)


def offsets_of_layout(layout: Dense | Strided) -> Counter[int]:
    """As the kernel goes over it."""
    found: Counter[int] = Counter()
    if isinstance(layout, Dense):
        return Counter(dict.fromkeys(range(layout.count), layout.weight))
    first, second = layout.sizes
    for row, column in product(range(layout.rows), range(layout.columns)):
        above = row // first
        numbers = (row % first, above % second, above // second)
        start = sum(number * stride for number, stride in zip(numbers, layout.strides, strict=True))
        found[start + column * layout.stride0] += layout.weight
    return found


@given(SIZES_AND_STRIDES)
def test_each_element_counts_as_often_as_the_tensor_has_it(dimensions: list[tuple[int, int]]) -> None:
    shape, strides = [size for size, _ in dimensions], [stride for _, stride in dimensions]
    layout = layout_of(shape, strides)
    if layout is None:
        assert len(shape) == 5
        return
    assert offsets_of_layout(layout) == offsets(shape, strides)


CUBE = torch.empty(4, 6, 32)


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (CUBE.permute(2, 0, 1), Dense(4 * 6 * 32, 1)),
        (CUBE[:1].expand(9, 6, 32), Dense(6 * 32, 9)),
        (torch.empty(()), Dense(1, 1)),
        (CUBE[:, :, 16:], Strided(24, 16, 1, (24, 1), (32, 0, 0), 1)),
        (CUBE[:, :3, :16].transpose(0, 2), Strided(12, 16, 1, (3, 4), (32, 192, 0), 1)),
        (CUBE.flatten()[::3], Strided(1, 256, 3, (1, 1), (0, 0, 0), 1)),
        (CUBE.as_strided((2, 2, 2, 2, 2), (1, 3, 7, 17, 41)), None),
    ],
    ids=["permuted", "expanded", "scalar", "columns", "both", "steps", "too many"],
)
def test_what_continues_itself_is_merged(view: torch.Tensor, expected: Dense | Strided | None) -> None:
    assert layout_of(view.shape, view.stride()) == expected
