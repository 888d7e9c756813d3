"""``start``'s arguments that choose tokens: some forwards of the model, one request's part of them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from probe_patch.runtime.debugger import PrecisionDebugger
from tests.runtime.conftest import AskedFor
from tests.runtime.dumps import read_dump
from tests.runtime.toys import Around, Fails, Mlp, ones


def norms(folder: Path) -> list[float]:
    """The widths of what went into the inner module, forward by forward."""
    data = read_dump(folder).data
    return [
        entry["input_args"][0]["shape"][0] for name, entry in data.items() if ".inner." in name and "forward" in name
    ]


@pytest.mark.parametrize("level", ["L0", "mix"])
@pytest.mark.parametrize(
    ("token_range", "expected"),
    [([0, 0], [1]), ([1, 2], [2, 3]), ((3, 9), [4, 5]), ([9, 10], []), (None, [1, 2, 3, 4, 5])],
)
def test_only_forwards_of_the_range_are_recorded(
    asked_for: AskedFor, tmp_path: Path, level: str, token_range: Any, expected: list[int]
) -> None:
    debugger, model = asked_for(level=level), Around(nn.Identity())
    debugger.start(model, token_range=token_range)
    for width in range(1, 6):
        torch.exp(model(ones(width)))
    debugger.stop()
    assert norms(tmp_path / "dump/step0/rank0") == expected
    assert not model._forward_pre_hooks
    assert not model._forward_hooks


def test_forwards_are_counted_from_each_start(asked_for: AskedFor, tmp_path: Path) -> None:
    debugger, model = asked_for(), Around(nn.Identity())
    for width in (1, 2):
        debugger.start(model, token_range=[1, 1])
        for _ in range(2):
            model(ones(width))
        debugger.stop()
    dump = read_dump(tmp_path / "dump/step0/rank0")
    assert norms(tmp_path / "dump/step0/rank0") == [1, 2]
    assert [name for name in dump.data if "inner" in name][-1] == "Module.inner.Identity.forward.1"


def test_a_whole_forward_is_in_the_range_the_model_itself_included(asked_for: AskedFor, tmp_path: Path) -> None:
    debugger, model = asked_for(), Around(nn.Identity())
    debugger.start(model, token_range=[1, 1])
    for width in (1, 2, 3):
        model(ones(width))
    debugger.stop()
    (entry,) = [record for name, record in read_dump(tmp_path / "dump/step0/rank0").data.items() if ".Around." in name]
    assert entry["input_args"][0]["shape"] == entry["output"][0]["shape"] == [2]


def test_functions_alone_are_chosen_by_the_models_forwards_too(asked_for: AskedFor, tmp_path: Path) -> None:
    debugger, model = asked_for(level="L1"), nn.Sequential(nn.Linear(4, 4))
    debugger.start(model, token_range=[1, 1])
    for rows in (1, 2, 3):
        model(ones(rows, 4))
    debugger.stop()
    (record,) = read_dump(tmp_path / "dump/step0/rank0").data.values()
    assert record["output"][0]["shape"] == [2, 4]


def test_gradients_of_recorded_forwards_are_recorded_whenever_they_come(asked_for: AskedFor, tmp_path: Path) -> None:
    debugger, model = asked_for(), nn.Sequential(nn.Linear(4, 4))
    debugger.start(model, token_range=[0, 0])
    output = model(ones(1, 4))
    model(ones(1, 4))
    output.sum().backward()
    debugger.stop()
    data = read_dump(tmp_path / "dump/step0/rank0").data
    assert "Module.0.Linear.backward.0" in data
    assert "Module.0.Linear.forward.1" not in data


def test_a_forward_that_raises_counts(asked_for: AskedFor, tmp_path: Path) -> None:
    debugger, inner = asked_for(), Fails()
    model = Around(inner)
    debugger.start(model, token_range=[1, 1])
    inner.error = ValueError("planned")
    with pytest.raises(ValueError, match="planned"):
        model(ones(1))
    inner.error = None
    for width in (2, 3):
        model(ones(width))
    debugger.stop()
    assert norms(tmp_path / "dump/step0/rank0") == [2]


@pytest.mark.parametrize(
    ("token_range", "sentence"),
    [
        ([3, 1], "token_range is [3, 1]; the first forward is at least 0 and at most the last one"),
        ([-1, 1], "token_range is [-1, 1]; the first forward is at least 0 and at most the last one"),
        ([1], "token_range is [1]; write the first and the last forward, such as [0, 3]"),
        ("0-3", "token_range is '0-3'; write the first and the last forward, such as [0, 3]"),
        ([0, True], "token_range is [0, True]; write the first and the last forward, such as [0, 3]"),
    ],
)
def test_a_range_that_is_none_is_said_and_nothing_is_recorded(
    debugger: PrecisionDebugger, tmp_path: Path, caplog: pytest.LogCaptureFixture, token_range: Any, sentence: str
) -> None:
    model = Around(nn.Identity())
    debugger.start(model, token_range=token_range)
    model(ones(1))
    debugger.stop()
    assert [sentence in text for text in caplog.messages] == [True]
    assert not (tmp_path / "dump").exists()


@pytest.mark.parametrize("model", [None, [Mlp(), Mlp()]], ids=["none", "two chunks"])
def test_a_range_needs_one_model(
    asked_for: AskedFor, caplog: pytest.LogCaptureFixture, model: list[nn.Module] | None
) -> None:
    debugger = asked_for(level="L1")
    debugger.start(model, token_range=[0, 1])
    torch.exp(ones(1))
    debugger.stop()
    dump = read_dump(debugger.config.folder() / "step0/rank0")
    assert dump.data == {}
    given = 0 if model is None else 2
    assert f"token_range counts the forwards of one model, and start() was given {given}" in caplog.text
    assert "hooking the model" in {problem["kind"] for problem in dump.meta["problems"]}


SCHEDULE = {"r0": 2, "r1": 3, "r2": 1}


@pytest.mark.parametrize(
    ("request_id", "scheduled", "expected"),
    [
        ("r1", SCHEDULE, (3, 4.0, 2.0)),
        ("r2", SCHEDULE, (1, 5.0, 5.0)),
        ("r9", SCHEDULE, None),
        ("r1", None, (6, 5.0, 0.0)),
        (None, SCHEDULE, (6, 5.0, 0.0)),
    ],
)
def test_one_requests_tokens(
    asked_for: AskedFor,
    tmp_path: Path,
    request_id: str | None,
    scheduled: Mapping[str, int] | None,
    expected: tuple[int, float, float] | None,
) -> None:
    keys = {} if request_id is None else {"statistics": {"request_id": request_id}}
    debugger, model = asked_for(**keys), Around(nn.Identity())
    debugger.start(model, scheduled_tokens=scheduled)
    model(torch.arange(6.0).unsqueeze(1).expand(6, 4))
    debugger.stop()
    if expected is None:
        assert not (tmp_path / "dump").exists()
        return
    record = read_dump(tmp_path / "dump/step0/rank0").data["Module.inner.Identity.forward.0"]["output"][0]
    assert (record["shape"][0], record["Max"], record["Min"]) == expected


def test_each_start_has_its_own_tokens(asked_for: AskedFor, tmp_path: Path) -> None:
    debugger, model = asked_for(statistics={"request_id": "r"}), Around(nn.Identity())
    for scheduled in ({"r": 1, "s": 5}, {"s": 2, "r": 4}, None):
        debugger.start(model, scheduled_tokens=scheduled)
        model(ones(6))
        debugger.stop()
    assert norms(tmp_path / "dump/step0/rank0") == [1, 4, 6]


@pytest.mark.parametrize("scheduled", [{"r": 0}, {"r": "1"}, {3: 1}, ["r"], {"r": True}])
def test_a_schedule_that_is_none_is_said_and_nothing_is_recorded(
    asked_for: AskedFor, tmp_path: Path, caplog: pytest.LogCaptureFixture, scheduled: Any
) -> None:
    debugger, model = asked_for(statistics={"request_id": "r"}), Around(nn.Identity())
    debugger.start(model, scheduled_tokens=scheduled)
    model(ones(6))
    debugger.stop()
    assert len([text for text in caplog.messages if "scheduled_tokens" in text]) == 1
    assert not (tmp_path / "dump").exists()


@pytest.mark.parametrize(
    ("number", "expected"), [(5, ["step5", "step6"]), (-1, ["step0", "step1"]), ("5", ["step0", "step1"])]
)
def test_steps_are_counted_from_the_first_one_given(
    debugger: PrecisionDebugger, tmp_path: Path, caplog: pytest.LogCaptureFixture, number: Any, expected: list[str]
) -> None:
    debugger.set_init_step(number)
    model = Around(nn.Identity())
    for _ in range(2):
        debugger.start(model)
        model(ones(1))
        debugger.step()
    assert sorted(path.name for path in (tmp_path / "dump").iterdir() if path.name.startswith("step")) == expected
    assert ("pass a whole number, at least 0" in caplog.text) == (expected[0] == "step0")


def test_parameters_have_no_tokens(asked_for: AskedFor, tmp_path: Path) -> None:
    """Even if they are as long as the batch."""
    debugger, model = asked_for(statistics={"request_id": "r1"}), Around(nn.Linear(4, 6))
    debugger.start(model, scheduled_tokens=SCHEDULE)
    model(ones(6, 4)).sum().backward()
    debugger.stop()
    data = read_dump(tmp_path / "dump/step0/rank0").data
    forward, gradients = (data[f"Module.inner.Linear.{entry}.0"] for entry in ("forward", "parameters_grad"))
    assert [tensor["shape"] for tensor in forward["parameters"].values()] == [[6, 4], [6]]
    assert {name: gradient["shape"] for name, (gradient,) in gradients.items()} == {"weight": [6, 4], "bias": [6]}
    assert forward["output"][0]["shape"] == [3, 6]


@pytest.mark.parametrize(
    ("scheduled", "sentence"),
    [(None, "start() was given no scheduled_tokens to find it by"), ({"s": 6}, "request r has no tokens here")],
)
def test_a_request_that_cannot_be_found_is_said(
    asked_for: AskedFor, caplog: pytest.LogCaptureFixture, scheduled: Mapping[str, int] | None, sentence: str
) -> None:
    debugger = asked_for(statistics={"request_id": "r"})
    debugger.start(Around(nn.Identity()), scheduled_tokens=scheduled)
    debugger.stop()
    assert sentence in caplog.text
