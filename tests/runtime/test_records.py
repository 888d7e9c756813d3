import enum
import json
import math
import sys
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from probe_patch.runtime.capture.contents import Statistics
from probe_patch.runtime.capture.nested import DEEPEST
from probe_patch.runtime.capture.records import Recorder
from probe_patch.runtime.json_text import BARE
from probe_patch.runtime.problems import Problems
from probe_patch.runtime.record_text import record_text
from probe_patch.runtime.stats.backends import reference
from tests.runtime.calls import CALL, recording
from tests.runtime.toys import Packed, Pair, ones

TENSOR_KEYS = ["type", "dtype", "shape", "Max", "Min", "Mean", "Norm", "requires_grad"]


class Colour(enum.IntEnum):
    RED = 3


class Opaque:
    pass


class Written:
    """A recorder and the JSON its records become."""

    def __init__(self) -> None:
        self.problems = Problems(set())
        self.recorder = Recorder(Statistics(self.problems), self.problems)

    def json(self, record: Any) -> Any:
        return json.loads(record_text(record, self.recorder.read(BARE), BARE))


def written(value: object, keyword: str = "value") -> Any:
    writer = Written()
    with recording(writer.recorder):
        record = writer.recorder.keywords(CALL, {keyword: value})
    found = writer.json(record)[keyword]
    assert writer.problems.all() == ()
    return found


def norm_of(record: Any) -> Any:
    return record["Norm"]


def test_a_tensor_record_has_msprobes_keys_in_order() -> None:
    record = written(torch.full((2, 2), 0.5, requires_grad=True))
    assert list(record) == TENSOR_KEYS
    assert list(record.values()) == ["torch.Tensor", "torch.float32", [2, 2], 0.5, 0.5, 0.5, 1.0, True]


def test_a_parameter_is_a_tensor() -> None:
    assert written(nn.Parameter(ones(2)))["type"] == "torch.Tensor"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (1, {"type": "int", "value": 1}),
        (True, {"type": "bool", "value": True}),
        (10**600, {"type": "int", "value": 10**600}),
        (2.5, {"type": "float", "value": 2.5}),
        (1e-05, {"type": "float", "value": 1e-05}),
        ("x" * 100, {"type": "str", "value": "x" * 100}),
        ('a "b"\n', {"type": "str", "value": 'a "b"\n'}),
        ("é", {"type": "str", "value": "é"}),
        (Colour.RED, {"type": "Colour", "value": 3}),
        (slice(1, None, 2), {"type": "slice", "value": [1, None, 2]}),
        (..., {"type": "ellipsis", "value": "..."}),
        (torch.Size([1, 2]), {"type": "torch.Size", "value": [1, 2]}),
        (torch.channels_last, {"type": "torch.memory_format", "format": "channels_last"}),
        (torch.distributed.ReduceOp.SUM, {"type": "torch.distributed.ReduceOp", "value": "RedOpType.SUM"}),
        (np.float32(1.5), {"type": "float32", "value": 1.5}),
        (torch.float16, {}),
        (torch.device("cpu"), {}),
        ((), []),
        ([1, (2,)], [{"type": "int", "value": 1}, [{"type": "int", "value": 2}]]),
        ({1: "a"}, {"1": {"type": "str", "value": "a"}}),
        (Pair(1, None), {"left": {"type": "int", "value": 1}, "right": None}),
        (1j, None),
        (b"x", None),
        ({1, 2}, None),
        (Opaque(), None),
        (Opaque, None),
    ],
)
def test_values_that_are_not_tensors(value: object, expected: object) -> None:
    assert written(value) == expected


def test_equal_values_that_are_not_alike_are_written_as_themselves() -> None:
    for value in (1, True, 1.0, 0, False, 0.0, -0.0, 1.0, True, 1, -0.0, 0.0, False, 0, "1", "0.0", "1"):
        found = written(value)
        assert (found["type"], repr(found["value"])) == (type(value).__name__, repr(value))


def test_what_is_written_once_for_all_does_not_become_ever_more() -> None:
    many = [(number, number + 0.5, str(number)) for number in range(10_000, 13_000)]
    held = [sys.getrefcount(value) for value in many[-1]]
    found = written(many)
    assert [tuple(part["value"] for part in parts) for parts in found] == many
    assert [sys.getrefcount(value) for value in many[-1]] == held


def test_a_whole_number_too_long_to_be_written_has_no_value() -> None:
    assert written([10**5000, -(10**5000), 1]) == [{"type": "int", "value": value} for value in (None, None, 1)]
    assert written(slice(10**5000)) == {"type": "slice", "value": [None, None, None]}


@pytest.mark.parametrize(
    ("keyword", "value", "expected"),
    [
        ("dtype", torch.float16, {"type": "torch.dtype", "value": "torch.float16"}),
        ("output_dtype", torch.float16, {"type": "torch.dtype", "value": "torch.float16"}),
        ("device", torch.device("cpu"), {"type": "torch.device", "value": "cpu"}),
    ],
)
def test_a_dtype_or_device_is_written_under_its_own_keyword(keyword: str, value: object, expected: object) -> None:
    assert written(value, keyword) == expected


def test_a_float_that_is_no_number_is_a_bare_token() -> None:
    assert math.isnan(written(math.nan)["value"])
    assert written(torch.tensor([math.inf, 0.0]))["Max"] == math.inf


def test_an_array_has_the_statistics_of_a_tensor() -> None:
    record = written(np.array([3, 4]))
    expected = {"type": "numpy.ndarray", "dtype": "int64", "shape": [2], "Max": 4, "Min": 3, "Mean": 3.5, "Norm": 5.0}
    assert record == expected


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.ma.masked_array([3.0, 4.0, 9e9], mask=[False, False, True]), (4.0, 3.0, 3.5, 5.0)),
        (np.full(4, 1e200), (1e200, 1e200, 1e200, 2e200)),
        (np.full(4, 1e-200), (1e-200, 1e-200, 1e-200, 2e-200)),
        (np.zeros(2), (0.0, 0.0, 0.0, 0.0)),
        (np.array([math.inf, 1.0]), (math.inf, 1.0, math.inf, math.inf)),
    ],
)
def test_an_arrays_numbers_are_of_what_is_not_masked(
    array: "np.ndarray[Any, Any]", expected: tuple[float, ...]
) -> None:
    record = written(array)
    assert (record["Max"], record["Min"], record["Mean"], record["Norm"]) == pytest.approx(expected, rel=1e-12)


def test_an_array_of_masked_values_only_has_no_numbers() -> None:
    record = written(np.ma.masked_array([3, 4], mask=True))
    assert (record["shape"], record["Max"], record["Norm"]) == ([2], None, None)


def test_tensors_are_found_inside_containers() -> None:
    record = written({"packed": Packed(ones(4), "thd"), "list": [Pair(ones(9), 1)]})
    assert norm_of(record["packed"]["lengths"]) == 2.0
    assert norm_of(record["list"][0]["left"]) == 3.0
    assert record["packed"]["name"] == {"type": "str", "value": "thd"}


@pytest.mark.parametrize(
    ("output", "shape"),
    [
        (ones(1), "[tensor]"),
        ((ones(1), None), "[tensor, null]"),
        ([ones(1)], "[tensor]"),
        ({"a": ones(1)}, "[{a: tensor}]"),
        (Packed(ones(1), "x"), "[{lengths: tensor, name: str}]"),
        (Pair(ones(1), None), "{left: tensor, right: null}"),
        (None, "[null]"),
        (3, "[int]"),
        (torch.Size([1]), "[torch.Size]"),
        ((), "[]"),
    ],
)
def test_outputs_are_brought_to_a_list(output: object, shape: str) -> None:
    writer = Written()
    with recording(writer.recorder):
        record = writer.recorder.output(CALL, output)
    assert outline(writer.json(record)) == shape


def outline(record: Any) -> str:
    if record is None:
        return "null"
    if isinstance(record, list):
        return f"[{', '.join(map(outline, record))}]"
    if "type" in record:
        return str(record["type"]).replace("torch.Tensor", "tensor")
    return "{" + ", ".join(f"{name}: {outline(part)}" for name, part in record.items()) + "}"


def test_what_contains_itself_ends() -> None:
    endless: list[object] = [1]
    endless.append(endless)
    assert written(endless) == [{"type": "int", "value": 1}, None]


def test_nesting_is_followed_to_a_limit() -> None:
    value: object = "bottom"
    for _ in range(DEEPEST - 1):
        value = [value]
    assert "bottom" in json.dumps(written(value))
    assert "bottom" not in json.dumps(written([[value]]))


def test_a_failing_statistic_leaves_the_record_without_numbers_and_the_next_has_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(values: Tensor, *rest: Any) -> None:
        if values.shape == (2,):
            raise RuntimeError("no kernel")
        measure(values, *rest)

    measure = reference.measure
    monkeypatch.setattr(reference, "measure", broken)
    monkeypatch.setenv("PROBE_PATCH_STATS_BACKEND", "reference")
    problems = Problems(set())
    recorder = Recorder(Statistics(problems), problems)
    with recording(recorder):
        records = recorder.arguments(CALL, (ones(2), ones(4)))
    found = json.loads(record_text(records, recorder.read(BARE), BARE))
    assert [(record["shape"], record["Max"]) for record in found] == [([2], None), ([4], 1.0)]
    (problem,) = problems.all()
    assert (problem.kind, problem.message) == ("measuring a tensor", "RuntimeError: no kernel")


def test_a_value_that_cannot_be_looked_at_is_null_and_its_neighbours_are_kept() -> None:
    class Hostile(dict[str, object]):
        def items(self) -> Any:
            raise RuntimeError("no items")

    writer = Written()
    first, second = writer.json({"args": writer.recorder.arguments(CALL, (Hostile(), 1))})["args"]
    assert (first, second) == (None, {"type": "int", "value": 1})
    assert writer.problems.all()[0].message == "RuntimeError: no items"


class Masked(Tensor):
    """A subclass whose own code must not run when it is measured."""

    @classmethod
    def __torch_function__(cls, *_: object, **__: object) -> Any:
        raise AssertionError("the subclass was asked")


class Wrapping(Tensor):
    """A wrapper subclass: it holds no values that could be read without its code."""

    @staticmethod
    def __new__(cls, shape: tuple[int, ...]) -> "Wrapping":
        return Tensor._make_wrapper_subclass(cls, shape)

    @classmethod
    def __torch_dispatch__(cls, *_: object, **__: object) -> Any:
        raise AssertionError("the wrapper was asked")


def test_tensor_subclasses() -> None:
    assert norm_of(written(ones(4).as_subclass(Masked))) == 2.0
    wrapped = written(Wrapping((2, 3)))
    assert (wrapped["shape"], wrapped["Max"]) == ([2, 3], None)


def test_tensors_inside_torch_func_have_no_numbers() -> None:
    seen = []

    writer = Written()

    def looked_at(x: Tensor) -> Tensor:
        with recording(writer.recorder):
            records = writer.recorder.arguments(CALL, (x,))
        seen.extend(writer.json({"args": records})["args"])
        return x.sum()

    torch.func.vmap(looked_at)(ones(2, 3))
    torch.func.grad(looked_at)(ones(3))
    assert [(record["shape"], record["Max"]) for record in seen] == [([3], None), ([3], None)]
    assert [problem.count for problem in writer.problems.all()] == [2]
