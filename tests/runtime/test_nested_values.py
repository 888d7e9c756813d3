"""Structures that hold one another, and tensors that hold holes."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from probe_patch.runtime.capture.contents import Statistics
from probe_patch.runtime.capture.nested import MOST_PARTS
from probe_patch.runtime.capture.records import Recorder
from probe_patch.runtime.problems import Problems
from probe_patch.runtime.stats.plain import plain_values
from tests.runtime.calls import CALL
from tests.runtime.configs import recorded
from tests.runtime.toys import Around, Echo, ones

ENTRY = "Module.inner.Echo.forward.0"
ONE = '{"type": "int", "value": 1}'


def doubled(depth: int) -> list[object]:
    """A list of 2 ** depth parts, though it takes hardly any memory."""
    value: list[object] = [1]
    for _ in range(depth):
        value = [value, value]
    return value


def test_a_structure_that_repeats_itself_too_often_is_null_and_a_problem() -> None:
    problems = Problems(set())
    recorder = Recorder(Statistics(problems), problems)
    assert recorder.arguments(CALL, (doubled(300), 1)) == [None, ONE]
    (problem,) = problems.all()
    assert problem.message == f"ValueError: a value has more than {MOST_PARTS} parts"


def test_each_value_may_have_as_many_parts() -> None:
    problems = Problems(set())
    large = [[1]] * (MOST_PARTS // 2 - 1)
    records = Recorder(Statistics(problems), problems).arguments(CALL, (large, large))
    assert isinstance(records, list)
    first, second = records
    assert first == second and first is not None
    assert problems.all() == ()


def test_what_is_shared_is_recorded_wherever_it_stands() -> None:
    shared = [1]
    record = Recorder(Statistics(Problems(set())), Problems(set())).output(CALL, [shared, {"a": shared}])
    assert record == [[ONE], {"a": [ONE]}]


@pytest.mark.parametrize("value", [doubled(300), {"deep": doubled(300)}], ids=["list", "dict"])
def test_the_run_goes_on_with_such_a_structure(tmp_path: Path, value: object) -> None:
    dump = recorded(tmp_path, Around(Echo(ones(1))), value, ones(2), keys={"statistics": {"data_mode": ["all"]}})
    assert dump.data[ENTRY]["input_args"][0] is None
    assert dump.data[ENTRY]["input_args"][1]["Max"] == 1.0
    assert dump.data[ENTRY]["output"][0]["Max"] == 1.0


def test_a_list_that_holds_itself_leaves_the_gradients_of_the_call(tmp_path: Path) -> None:
    endless: list[object] = [ones(2).requires_grad_()]
    endless.append(endless)
    dump = recorded(tmp_path, Around(Echo(ones(1))), endless, keys={"statistics": {"data_mode": ["all"]}})
    first, second = dump.data[ENTRY]["input_args"][0]
    assert (first["Max"], second) == (1.0, None)
    assert dump.meta["problems"] == []


def with_holes() -> Tensor:
    return torch.nested.nested_tensor_from_jagged(
        torch.arange(10.0), torch.tensor([0, 4, 8, 10]), torch.tensor([2, 3, 1])
    )


def test_a_jagged_tensor_with_holes_has_no_numbers_and_a_problem(tmp_path: Path) -> None:
    dump = recorded(
        tmp_path,
        Around(Echo()),
        with_holes(),
        keys={"task": "tensor", "tensor": {"list": ["inner"], "summary_mode": "md5"}},
    )
    (record,) = dump.data[ENTRY]["input_args"]
    assert (record["shape"], record["Max"], record["md5"], "data_name" in record) == ([3, None], None, None, False)
    (problem,) = dump.meta["problems"]
    assert (problem["kind"], problem["count"]) == ("measuring a tensor", 1)
    assert "a jagged tensor with holes (lengths) has no numbers" in problem["message"]


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_view_of_a_nested_tensor_is_no_more_than_what_it_shows() -> None:
    whole = torch.nested.nested_tensor([torch.arange(6.0).reshape(2, 3), 10 + torch.arange(12.0).reshape(4, 3)])
    column = plain_values(whole.chunk(3, dim=-1)[0])
    assert column is not None and column.tolist() == [0.0, 3.0, 10.0, 13.0, 16.0, 19.0]
    turned = plain_values(whole.transpose(1, 2))
    assert turned is not None and turned.sum() == whole.values().sum()
