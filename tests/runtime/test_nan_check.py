"""Task "nan_check": only what is not finite is kept, and the first of it is named, with where it came from."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from probe_patch.runtime.debugger import PrecisionDebugger
from tests.runtime.conftest import AskedFor
from tests.runtime.dumps import DumpOnDisk, read_dump
from tests.runtime.toys import ones

NAN, INF = float("nan"), float("inf")


class Log(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.log(x)


class Exp(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.exp(x)


class Masked(nn.Module):
    """Attention scores behind a mask of minus infinities."""

    def __init__(self) -> None:
        super().__init__()
        self.softmax = nn.Softmax(-1)

    def forward(self, scores: Tensor, mask: Tensor) -> Any:
        return self.softmax(scores + mask)


def net(*middle: nn.Module) -> nn.Sequential:
    """Two linear layers that pass everything on, and something between them."""
    first, last = nn.Linear(2, 2), nn.Linear(2, 2)
    for layer in (first, last):
        nn.init.eye_(layer.weight)
        nn.init.zeros_(layer.bias)
    return nn.Sequential(first, *middle, last)


def with_a_bad_weight(value: float) -> nn.Sequential:
    model = net()
    with torch.no_grad():
        next(model[1].parameters())[0, 0] = value
    return model


def check(debugger: PrecisionDebugger, model: nn.Module, *inputs: Tensor, backward: bool = False) -> DumpOnDisk:
    debugger.start(model)
    output = model(*inputs)
    if backward:
        output.sum().backward()
    debugger.stop()
    debugger.step()
    return read_dump(debugger.config.folder() / "step0" / "rank0")


def culprit(found: dict[str, Any] | None) -> tuple[Any, ...] | None:
    return None if found is None else tuple(found[key] for key in ("entry", "tensor", "module", "went_in", "born"))


@pytest.mark.parametrize("level", ["L0", "mix"])
@pytest.mark.parametrize(
    ("model", "x", "nan", "inf"),
    [
        (net(Log()), ones(1, 2), None, None),
        (
            net(Log()),
            -ones(1, 2),
            ("Module.1.Log.forward.0", "output.0", "Module.1.Log.forward.0", "finite", True),
            None,
        ),
        (net(Log()), 0 * ones(1, 2), None, ("Module.1.Log.forward.0", "output.0", None, "finite", True)),
        (net(Exp()), 1000 * ones(1, 2), None, ("Module.1.Exp.forward.0", "output.0", None, "finite", True)),
    ],
    ids=["none", "NaN", "minus infinity", "overflow"],
)
def test_what_is_born_in_a_module(
    asked_for: AskedFor, level: str, model: nn.Module, x: Tensor, nan: Any, inf: Any
) -> None:
    found = check(asked_for(task="nan_check", level=level), model, x).meta["nan_check"]
    for kind, expected in (("first_nan", nan), ("first_inf", inf)):
        if expected is None:
            continue
        entry, tensor, _, went_in, born = expected
        by_function = "Torch.log.0.forward" if "Log" in entry else "Torch.exp.0.forward"
        inside = by_function if level == "mix" else entry
        assert culprit(found[kind]) == (inside, tensor, entry, went_in, born)
        assert found["first_born"] == found[kind]
    if nan is None and inf is None:
        assert found == {"first_nan": None, "first_inf": None, "first_born": None}


def test_only_entries_that_hold_one_are_kept_in_every_file(asked_for: AskedFor) -> None:
    dump = check(asked_for(task="nan_check"), net(Log()), -ones(1, 2))
    kept = ["Module.1.Log.forward.0", "Module.2.Linear.forward.0"]
    assert [entry for entry in dump.data if entry.count(".") > 3] == kept
    assert "Module.0.Linear.forward.0" not in dump.construct
    assert "Module.0.Linear.forward.0" not in str(dump.stack)
    assert set(dump.data) <= set(dump.construct)
    output = dump.data[kept[0]]["output"][0]
    assert (output["NanCount"], output["InfCount"], dump.dump["task"]) == (2, 0, "nan_check")


@pytest.mark.parametrize(("value", "kind"), [(NAN, "first_nan"), (INF, "first_inf")])
def test_a_bad_parameter_is_named_before_what_comes_of_it(asked_for: AskedFor, value: float, kind: str) -> None:
    dump = check(asked_for(task="nan_check"), with_a_bad_weight(value), ones(1, 2))
    entry = "Module.1.Linear.forward.0"
    content = "nan" if kind == "first_nan" else "inf"
    assert culprit(dump.meta["nan_check"][kind]) == (entry, "parameters.weight", entry, content, False)
    assert dump.meta["nan_check"]["first_born"] is None


def test_of_functions_alone_a_bad_parameter_is_an_input_of_the_function(asked_for: AskedFor) -> None:
    dump = check(asked_for(task="nan_check", level="L1"), with_a_bad_weight(NAN), ones(1, 2))
    assert culprit(dump.meta["nan_check"]["first_nan"]) == (
        "Functional.linear.1.forward",
        "input.1",
        None,
        "nan",
        False,
    )


def test_a_masks_infinities_are_not_born_and_not_warned_of(
    asked_for: AskedFor, caplog: pytest.LogCaptureFixture
) -> None:
    model = nn.Sequential(Masked())
    mask = torch.tensor([[0.0, -INF]])
    debugger = asked_for(task="nan_check")
    debugger.start(model)
    model[0](ones(1, 2), mask)
    debugger.stop()
    found = read_dump(debugger.config.folder() / "step0/rank0").meta["nan_check"]
    assert culprit(found["first_inf"]) == (
        "Module.0.Masked.forward.0",
        "input.1",
        "Module.0.Masked.forward.0",
        "inf",
        False,
    )
    assert (found["first_nan"], found["first_born"]) == (None, None)
    assert "first" not in caplog.text


def test_what_a_backward_breeds(asked_for: AskedFor) -> None:
    """The square root of 0 has an infinite slope, and 0 times that is no number."""
    model = net(Root(), Zero())
    dump = check(asked_for(task="nan_check"), model, torch.zeros(1, 2), backward=True)
    found = dump.meta["nan_check"]
    assert culprit(found["first_nan"]) == (
        "Module.1.Root.backward.0",
        "output.0",
        "Module.1.Root.backward.0",
        "finite",
        True,
    )
    assert all("backward" in entry or "parameters_grad" in entry for entry in dump.data)


class Root(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.sqrt(x)


class Zero(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return 0 * x


class Inline(nn.Module):
    """Computes between its modules."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Identity()

    def forward(self, x: Tensor) -> Any:
        return self.inner(torch.log(x))


def test_what_a_module_computes_between_its_own_modules_is_born_in_it(asked_for: AskedFor) -> None:
    found = check(asked_for(task="nan_check"), net(Inline()), -ones(1, 2)).meta["nan_check"]
    inner, outer = "Module.1.inner.Identity.forward.0", "Module.1.Inline.forward.0"
    assert culprit(found["first_nan"]) == (inner, "input.0", inner, "nan", False)
    assert culprit(found["first_born"]) == (outer, "output.0", outer, "finite", True)


def test_the_rank_is_named(asked_for: AskedFor, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model, found = net(Log()), []
    for rank, x in ((0, ones(1, 2)), (1, -ones(1, 2))):
        debugger = asked_for(task="nan_check")
        debugger.start(model, rank_id=rank)
        model(x)
        debugger.stop()
        found.append(read_dump(tmp_path / f"dump/step0/rank{rank}").meta["nan_check"]["first_nan"])
    assert (found[0], found[1]["rank"]) == (None, 1)
    assert [text for text in caplog.messages if "NaN" in text] == [
        "probe-patch: the first NaN on rank 1 is output.0 of Module.1.Log.forward.0: what went into that call was "
        "finite, so it was born there"
    ]


def test_the_first_of_several_starts_stays_the_first(asked_for: AskedFor, tmp_path: Path) -> None:
    model = net(Log())
    debugger = asked_for(task="nan_check")
    for x in (ones(1, 2), -ones(1, 2), -ones(1, 2)):
        debugger.start(model)
        model(x)
        debugger.stop()
    found = read_dump(tmp_path / "dump/step0/rank0").meta["nan_check"]
    assert found["first_nan"]["entry"] == "Module.1.Log.forward.1"


def _complex(x: Tensor) -> Tensor:
    return torch.complex(x, ones(*x.shape))


@pytest.mark.parametrize(
    ("of", "kind"),
    [
        (lambda: ones(2).half() * 70000, "first_inf"),
        (lambda: torch.tensor([NAN, INF], dtype=torch.bfloat16), "first_nan"),
        (lambda: torch.tensor([NAN, INF], dtype=torch.bfloat16), "first_inf"),
        (lambda: torch.tensor([NAN]).to(torch.float8_e4m3fn), "first_nan"),
        (lambda: _complex(torch.tensor([INF])), "first_inf"),
        (lambda: torch.tensor(NAN), "first_nan"),
    ],
    ids=["fp16", "NaN and Inf: NaN", "NaN and Inf: Inf", "fp8", "complex", "0-d"],
)
def test_every_dtype(asked_for: AskedFor, of: Callable[[], Tensor], kind: str) -> None:
    debugger = asked_for(task="nan_check")
    model = nn.Sequential(nn.Identity())
    debugger.start(model)
    model(of())
    debugger.stop()
    found = read_dump(debugger.config.folder() / "step0/rank0").meta["nan_check"]
    assert found[kind]["tensor"] == "input.0"


def test_without_inputs_nobody_is_called_born(asked_for: AskedFor) -> None:
    debugger = asked_for(task="nan_check", nan_check={"data_mode": ["output"]})
    found = check(debugger, net(Log()), -ones(1, 2)).meta["nan_check"]
    assert culprit(found["first_nan"])[3:] == (None, False)  # type: ignore[index]
    assert json.dumps(found["first_born"]) == "null"


@pytest.mark.parametrize("data_mode", [["all"], ["backward"]])
def test_a_backward_through_a_bad_weight_bears_nothing(asked_for: AskedFor, data_mode: list[str]) -> None:
    debugger = asked_for(task="nan_check", nan_check={"data_mode": data_mode})
    dump = check(debugger, with_a_bad_weight(NAN), ones(2, 2), backward=True)
    assert dump.meta["nan_check"]["first_nan"] is not None
    assert dump.meta["nan_check"]["first_born"] is None
