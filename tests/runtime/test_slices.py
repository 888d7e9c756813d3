"""slice: the part of each tensor that is looked at; and the tokens of one request."""

from pathlib import Path
from typing import Any

import pytest
import torch

from probe_patch.config.sections import Slice
from probe_patch.errors import WrongUsage
from probe_patch.runtime.capture.slices import sliced, token_slice
from tests.runtime.configs import debugger_with, recorded
from tests.runtime.dumps import only_rank, read_dump
from tests.runtime.toys import Around, Echo, Mlp, ones

GRID = torch.arange(12).reshape(3, 4)


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([], GRID),
        ([Slice(begin=1)], GRID[1:]),
        ([Slice(end=2)], GRID[:2]),
        ([Slice(begin=-1)], GRID[-1:]),
        ([Slice(end=-1)], GRID[:-1]),
        ([Slice(dim=1, begin=1, end=3)], GRID[:, 1:3]),
        ([Slice(begin=1), Slice(dim=1, end=1)], GRID[1:, :1]),
        ([Slice(begin=1), Slice(begin=2)], GRID[2:]),
        ([Slice(dim=2, end=1)], GRID),
        ([Slice(size=3, end=1)], GRID[:1]),
        ([Slice(size=4, end=1)], GRID),
        ([Slice(size=4, end=1), Slice(dim=1, size=4, end=1)], GRID[:, :1]),
        ([Slice(begin=5)], GRID[:0]),
    ],
)
def test_the_part_that_is_left(items: list[Slice], expected: torch.Tensor) -> None:
    assert torch.equal(sliced(GRID, items), expected)


def test_a_scalar_has_no_parts() -> None:
    assert sliced(torch.tensor(3), [Slice(end=1)]).item() == 3


def test_a_slice_is_no_copy() -> None:
    assert sliced(GRID, [Slice(begin=1)]).untyped_storage().data_ptr() == GRID.untyped_storage().data_ptr()


def test_records_are_of_the_part(tmp_path: Path) -> None:
    keys = {"statistics": {"slice": [{"dim": 0, "size": 3, "begin": 1, "end": 2}, {"dim": 1, "begin": -2}]}}
    dump = recorded(tmp_path, Around(Echo()), GRID, torch.arange(3), torch.arange(4), keys=keys)
    records = dump.data["Module.inner.Echo.forward.0"]["input_args"]
    assert [(record["shape"], record["Max"], record["Min"]) for record in records] == [
        ([1, 2], 7, 6),
        ([1], 1, 1),
        ([4], 3, 0),
    ]


def test_an_empty_part_has_no_numbers(tmp_path: Path) -> None:
    dump = recorded(tmp_path, Around(Echo()), GRID, keys={"statistics": {"slice": [{"begin": 9}]}})
    (record,) = dump.data["Module.inner.Echo.forward.0"]["input_args"]
    assert (record["shape"], record["Max"]) == ([0, 4], None)


def test_gradients_are_sliced_too(tmp_path: Path) -> None:
    debugger = debugger_with(tmp_path, statistics={"slice": [{"dim": 0, "size": 5, "end": 1}]})
    model = Mlp()
    debugger.start(model)
    model(ones(5, 4)).sum().backward()
    debugger.stop()
    entry = read_dump(only_rank(tmp_path / "dump/step0")).data["Module.norm.LayerNorm.backward.0"]
    assert [record["shape"] for record in entry["input"] + entry["output"]] == [[1, 4], [1, 4]]


def test_further_slices_hold_until_they_are_changed(tmp_path: Path) -> None:
    debugger = debugger_with(tmp_path)
    model = Around(Echo())
    shapes = []
    for further in ((), (Slice(size=3, begin=2),), ()):
        debugger.start(model)
        debugger.service._dumps[debugger.config.folder()].store.recorder.further_slices = further
        model(GRID)
        debugger.stop()
    data = read_dump(only_rank(tmp_path / "dump/step0")).data
    shapes = [data[f"Module.inner.Echo.forward.{call}"]["input_args"][0]["shape"] for call in range(3)]
    assert shapes == [[3, 4], [1, 4], [3, 4]]


@pytest.mark.parametrize(
    ("request_id", "scheduled", "expected"),
    [
        ("a", {"a": 3}, (3, 0, 3)),
        ("b", {"a": 3, "b": 2, "c": 1}, (6, 3, 5)),
        ("c", {"a": 3, "b": 2, "c": 1}, (6, 5, 6)),
        ("d", {"a": 3}, None),
        ("a", {}, None),
    ],
)
def test_the_tokens_of_a_request(request_id: str, scheduled: dict[str, int], expected: Any) -> None:
    found = token_slice(request_id, scheduled)
    assert (None if found is None else (found.size, found.begin, found.end)) == expected
    assert found is None or found.dim == 0


@pytest.mark.parametrize("scheduled", [[("a", 1)], {"a": 0}, {"a": 1.0}, {"a": True}, {1: 1}])
def test_scheduled_tokens_are_counts_by_request(scheduled: Any) -> None:
    with pytest.raises(WrongUsage, match="pass a dict of request id to number of tokens"):
        token_slice("a", scheduled)
