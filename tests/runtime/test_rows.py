"""Rows of numbers on their way from a device to the host."""

import pytest
import torch

from probe_patch.runtime.stats.rows import FLOAT_COLUMNS, WORDS, read_rows


def words_of(rows: int, accumulator: torch.dtype) -> torch.Tensor:
    """Rows of which each number tells where it stands."""
    words = (torch.arange(rows * WORDS) + 1).view(rows, WORDS)
    places = torch.arange(rows * FLOAT_COLUMNS, dtype=accumulator).view(rows, FLOAT_COLUMNS)
    words.view(accumulator)[:, :FLOAT_COLUMNS] = places / 7
    return words


@pytest.mark.parametrize("rows", [0, 1, 63, 64, 65, 300])
@pytest.mark.parametrize("accumulator", [torch.float64, torch.float32], ids=str)
def test_every_number_is_the_one_of_its_row(rows: int, accumulator: torch.dtype) -> None:
    words = words_of(rows, accumulator)
    read = read_rows(words, accumulator, has_counts=True, unmeasured=())
    expected = words.view(accumulator)[:, :FLOAT_COLUMNS].flatten().tolist()
    assert read.floats.tolist() == expected
    assert [read.integers.of(row) for row in reversed(range(rows))] == words[:, FLOAT_COLUMNS:].tolist()[::-1]
