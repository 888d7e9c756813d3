"""The numbers of rows: compiled and as plain Python, the same."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe_patch.runtime.stats import row_numbers
from tests.runtime.plain import plain_twin

MODULES = pytest.mark.parametrize("module", [row_numbers, plain_twin(row_numbers)], ids=["as it is imported", "plain"])


@MODULES
@given(numbers=st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_each_stands_in_its_place(module: Any, numbers: list[int]) -> None:
    found = module.RowNumbers()
    for number in numbers:
        found.append(number)
    assert [found.at(place) for place in range(len(numbers))] == numbers


@MODULES
def test_there_may_be_many(module: Any) -> None:
    found = module.RowNumbers()
    for number in range(100_000):
        found.append(-number)
    assert [found.at(place) for place in (0, 1023, 1024, 99_999)] == [0, -1023, -1024, -99_999]
    with pytest.raises(IndexError):
        found.at(100_000)
