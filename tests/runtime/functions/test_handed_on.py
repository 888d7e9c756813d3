"""Functions of torch in Python: their arguments are recorded as they were passed, not as torch hands them on."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from tests.runtime.functions.recording import recorded

X = torch.linspace(-1, 1, 8).view(2, 4)

PASSED: dict[str, tuple[Callable[[], Any], list[Any], dict[str, Any]]] = {
    "by position": (lambda: F.softmax(X, -1), ["tensor", -1], {}),
    "by keyword": (lambda: F.softmax(X, dim=-1), ["tensor"], {"dim": -1}),
    "the tensor by keyword": (lambda: F.softmax(dim=-1, input=X), [], {"dim": -1, "input": "tensor"}),
    "a constant tuple": (lambda: F.layer_norm(X, (4,)), ["tensor", [4]], {}),
    "defaults that are passed": (lambda: F.dropout(X, 0.5, training=False), ["tensor", 0.5], {"training": False}),
    "one of two functions": (lambda: F.max_pool1d(X, 2, stride=2), ["tensor", 2], {"stride": 2}),
    "any number of arguments": (lambda: torch.einsum("ij,kj", X, X), ["ij,kj", "tensor", "tensor"], {}),
    "a method": (lambda: X.split(2, dim=1), ["tensor", 2], {"dim": 1}),  # type: ignore[no-untyped-call]
    "a method's defaults": (lambda: X.norm(), ["tensor"], {}),
    "in C": (lambda: torch.sum(X, 0, keepdim=True), ["tensor", 0], {"keepdim": True}),
    # Where the call does not tell, as torch hands them on.
    "unpacked": (
        lambda: F.softmax(*(X, -1)),
        ["tensor"],
        {"dim": -1, "_stacklevel": 3, "dtype": None},
    ),
}


def told(record: Any) -> Any:
    """A record without what there is to say of a tensor."""
    if isinstance(record, list):
        return [told(part) for part in record]
    if isinstance(record, dict) and record.get("type") == "torch.Tensor":
        return "tensor"
    return record["value"] if isinstance(record, dict) else record


@pytest.mark.parametrize("example", PASSED)
def test_arguments_are_recorded_as_they_were_passed(example: str) -> None:
    work, args, kwargs = PASSED[example]
    (entry,) = recorded(work).data.values()
    assert told(entry["input_args"]) == args
    assert {name: told(record) for name, record in entry["input_kwargs"].items()} == kwargs


def normalised(first: bool) -> Any:
    """Two calls at one place of the bytecode, which differ in what they pass."""
    return F.layer_norm(X, (4,), None if first else torch.ones(4))


def test_calls_at_one_place_are_told_apart() -> None:
    given = recorded(lambda: (normalised(True), normalised(False))).data
    layer_norms = [entry["input_args"] for name, entry in given.items() if "layer_norm" in name]
    assert [told(args) for args in layer_norms] == [["tensor", [4], None], ["tensor", [4], "tensor"]]


def test_defaults_that_change_meanwhile_are_not_taken_for_what_was_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    def work() -> None:
        for defaults in ((0.5, False, False), (0.25, False, True)):
            monkeypatch.setattr(F.dropout, "__defaults__", defaults)
            F.dropout(X.clone())

    given = [entry for name, entry in recorded(work).data.items() if "dropout" in name]
    assert [(told(entry["input_args"]), entry["input_kwargs"]) for entry in given] == [(["tensor"], {})] * 2
