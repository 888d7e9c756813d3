"""Level debug: values that a program hands over by name, and what flows back to them."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from probe_patch.runtime.debugger import PrecisionDebugger
from tests.needs import needs
from tests.runtime.conftest import AskedFor
from tests.runtime.test_msprobe_reads import MSPROBE, msprobe
from tests.runtime.toys import Around, Echo, ones


class Pair(NamedTuple):
    left: Tensor
    right: Tensor


def read(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "debug.json").read_text())
    return document


@pytest.fixture
def debugger(asked_for: AskedFor) -> PrecisionDebugger:
    return asked_for(level="debug")


def saved(debugger: PrecisionDebugger, step: int = 0) -> dict[str, Any]:
    debugger.step()
    data: dict[str, Any] = read(debugger.config.folder() / f"step{step}" / "rank0")["data"]
    return data


def numbers(record: Any) -> Any:
    """Each tensor by its Max, in the nesting of the record."""
    if isinstance(record, dict) and record.get("type") == "torch.Tensor":
        return record["Max"]
    if isinstance(record, dict):
        return record.get("value", {key: numbers(part) for key, part in record.items()})
    return [numbers(part) for part in record] if isinstance(record, list) else record


@pytest.mark.parametrize(
    ("variable", "expected", "gradient"),
    [
        (lambda x: 2 * x, 2.0, 3.0),
        (lambda x: [2 * x, (x, 5)], [2.0, [1.0, 5]], [3.0, [6.0, None]]),
        (lambda x: {"a": 2 * x, "b": [None, "t"]}, {"a": 2.0, "b": [None, "t"]}, {"a": 3.0, "b": [None, None]}),
        (lambda x: Pair(x.detach(), 2 * x), {"left": 1.0, "right": 2.0}, {"left": None, "right": 3.0}),
        (lambda _: 7, 7, None),
        (lambda _: [], [], []),
    ],
    ids=["tensor", "list", "dict", "named tuple", "number", "empty"],
)
def test_any_nesting_and_the_gradients_in_the_same(
    debugger: PrecisionDebugger, variable: Callable[[Tensor], Any], expected: Any, gradient: Any
) -> None:
    x = ones(2).requires_grad_()
    value = variable(x)
    debugger.save(value, "y")
    doubled = next((part for part in _flat(value) if part.requires_grad and part is not x), None)
    if doubled is not None:
        (3 * doubled).sum().backward()  # type: ignore[no-untyped-call]
    data = saved(debugger)
    assert list(data) == ["y.0.debug", "y_grad.0.debug"]
    assert numbers(data["y.0.debug"]) == expected
    assert numbers(data["y_grad.0.debug"]) == gradient


def _flat(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [tensor for part in parts for tensor in _flat(part)]


def test_names_are_counted_and_counts_begin_again_with_each_step(debugger: PrecisionDebugger) -> None:
    for name in ("a", "b", "a"):
        debugger.save(1, name, save_backward=False)
    assert list(saved(debugger)) == ["a.0.debug", "b.0.debug", "a.1.debug"]
    debugger.save(1, "a", save_backward=False)
    assert list(saved(debugger, 1)) == ["a.0.debug"]


def test_a_value_is_recorded_as_it_is_at_that_moment(debugger: PrecisionDebugger) -> None:
    x = ones(2)
    debugger.save(x, "x", save_backward=False)
    x.fill_(9)
    assert saved(debugger)["x.0.debug"]["Max"] == 1.0


def test_the_head_is_that_of_a_dump_and_no_other_file_is_there(debugger: PrecisionDebugger) -> None:
    debugger.save(1, "x")
    debugger.step()
    folder = debugger.config.folder() / "step0/rank0"
    head = {key: value for key, value in read(folder).items() if key != "data"}
    assert head == {"task": "statistics", "level": "debug", "framework": "pytorch", "dump_data_dir": None}
    assert sorted(path.name for path in folder.iterdir()) == ["debug.json", "meta.json"]


def test_start_and_stop_do_nothing(debugger: PrecisionDebugger) -> None:
    model = Around(Echo())
    debugger.start(model)
    model()
    assert not model.inner._forward_hooks
    debugger.stop()
    debugger.step()
    assert not debugger.config.folder().exists()


def test_inside_a_phase_values_go_into_its_folder(debugger: PrecisionDebugger) -> None:
    with debugger.phase("ref"):
        debugger.save(1, "x")
    debugger.save(1, "y")
    debugger.step()
    folder = debugger.config.folder()
    assert list(read(folder / "ref/step0/rank0")["data"]) == ["x.0.debug", "x_grad.0.debug"]
    assert list(read(folder / "step0/rank0")["data"]) == ["y.0.debug", "y_grad.0.debug"]


@pytest.mark.parametrize(
    ("keys", "expected"), [({"step": [1]}, [1]), ({"rank": [1]}, []), ({"dump_enable": False}, [])]
)
def test_only_what_is_chosen(asked_for: AskedFor, keys: dict[str, Any], expected: list[int]) -> None:
    debugger = asked_for(level="debug", **keys)
    for _ in range(2):
        debugger.save(1, "x")
        debugger.step()
    assert [step for step in (0, 1) if (debugger.config.folder() / f"step{step}").exists()] == expected


def test_with_task_tensor_values_and_gradients_are_files(asked_for: AskedFor) -> None:
    debugger = asked_for(level="debug", task="tensor")
    x = ones(2).requires_grad_()
    debugger.save([2 * x, {"k": x}], "y")
    debugger.save(x, "x")
    (5 * x).sum().backward()  # type: ignore[no-untyped-call]
    folder = debugger.config.folder() / "step0/rank0/dump_tensor_data"
    data = saved(debugger)
    assert data["y.0.debug"][0]["data_name"] == "y.0.debug.0.pt"
    expected = {"y.0.debug.0.pt": 2.0, "y.0.debug.1.k.pt": 1.0, "x.0.debug.pt": 1.0}
    expected |= {"x_grad.0.debug.pt": 5.0, "y_grad.0.debug.1.k.pt": 5.0}
    files = {path.name: torch.load(path, weights_only=True)[0].item() for path in folder.iterdir()}
    assert files == expected


def test_at_other_levels_save_does_nothing(asked_for: AskedFor, caplog: pytest.LogCaptureFixture) -> None:
    debugger = asked_for(level="L0")
    debugger.save(ones(1), "x")
    debugger.step()
    assert not debugger.config.folder().exists()
    assert caplog.messages == []


def test_entries_have_their_limit(asked_for: AskedFor) -> None:
    debugger = asked_for(level="debug", limits={"entries": 2})
    for name in "abc":
        debugger.save(1, name, save_backward=False)
    assert list(saved(debugger)) == ["a.0.debug", "b.0.debug"]
    meta = json.loads((debugger.config.folder() / "step0/rank0/meta.json").read_text())
    assert "limits.entries, 2, is reached" in str(meta["problems"])


class Unreadable:
    def __init__(self) -> None:
        self._fields = 5


def test_a_value_that_cannot_be_recorded_is_null_and_the_run_goes_on(debugger: PrecisionDebugger) -> None:
    class Bad(dict[str, int]):
        def items(self) -> Any:
            raise RuntimeError("broken on purpose")

    itself: list[Any] = []
    itself.append(itself)
    for value in (Bad(), itself, Unreadable(), object()):
        debugger.save(value, "x", save_backward=False)
    debugger.save(itself, "itself")
    debugger.save(Bad(), "y")
    data = saved(debugger)
    assert (data["itself_grad.0.debug"], data["y_grad.0.debug"]) == ([None], None)
    assert [saved_ for name, saved_ in data.items() if name.startswith("x.")] == [None, [None], None, None]


def test_nothing_of_ours_is_left_and_gradients_are_what_they_were(debugger: PrecisionDebugger) -> None:
    x, weight = ones(2).requires_grad_(), torch.tensor([2.0, 3.0], requires_grad=True)
    y = weight * x
    debugger.save((y, weight), "y")
    (y * y).sum().backward()  # type: ignore[no-untyped-call]
    debugger.step()
    assert x.grad is not None
    assert torch.equal(x.grad, torch.tensor([8.0, 18.0]))
    assert not y._backward_hooks
    assert not weight._backward_hooks


def test_two_runs_are_read_by_msprobe_compare(asked_for: AskedFor, tmp_path: Path) -> None:
    needs(MSPROBE.exists(), "make venv-msprobe installs msProbe")
    for name, scale in (("left", 1.0), ("right", 2.0)):
        debugger = asked_for(level="debug", dump_path=str(tmp_path / name))
        x = ones(2).requires_grad_()
        debugger.save({"h": scale * x}, "hidden")
        debugger.save(x, "x")
        (scale * x).sum().backward()  # type: ignore[no-untyped-call]
        debugger.step()
    files = [tmp_path / name / "step0/rank0/debug.json" for name in ("left", "right")]
    msprobe("compare", "-tp", files[0], "-gp", files[1], "-o", tmp_path / "out", folder=tmp_path)
    (result,) = (tmp_path / "out").glob("debug_compare_result_*.csv")
    rows = {row["NPU Name"]: row for row in csv.DictReader(result.read_text(encoding="utf-8-sig").splitlines())}
    assert list(rows) == ["hidden.0.debug.h", "hidden_grad.0.debug.h", "x.0.debug", "x_grad.0.debug"]
    assert (float(rows["x_grad.0.debug"]["NPU max"]), float(rows["x_grad.0.debug"]["Bench max"])) == (1.0, 2.0)


def test_a_value_that_repeats_itself_without_end_is_null_and_not_gone_through(debugger: PrecisionDebugger) -> None:
    value: list[Any] = [ones(1).requires_grad_()]
    for _ in range(60):
        value = [value, value]
    debugger.save(value, "deep")
    assert saved(debugger) == {"deep.0.debug": None, "deep_grad.0.debug": None}
