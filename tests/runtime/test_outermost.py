"""Models that are not called as a whole: compiled around, checkpointed around, or layer by layer."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tests.runtime.conftest import AskedFor
from tests.runtime.dumps import DumpOnDisk, read_dump
from tests.runtime.toys import Mlp, ones


@pytest.mark.parametrize("level", ["L0", "mix"])
def test_a_model_that_ran_compiled_and_left_only_its_parameters_gradients_is_said(
    asked_for: AskedFor, tmp_path: Path, level: str
) -> None:
    model = Mlp()
    compiled = torch.compile(lambda x: model(x), backend="eager")
    compiled(ones(2, 4))
    debugger = asked_for(level=level)
    debugger.start(model)
    compiled(ones(2, 4)).sum().backward()
    debugger.stop()
    dump = read_dump(tmp_path / "dump/step0/rank0")
    assert not [entry for entry in dump.data if entry.startswith("Module.") and "parameters_grad" not in entry]
    assert ["no module's forward ran" in problem["message"] for problem in dump.meta["problems"]] == [True]


def test_at_l1_a_compiled_model_is_named(asked_for: AskedFor, tmp_path: Path) -> None:
    model: Any = torch.compile(Mlp(), backend="eager")
    debugger = asked_for(level="L1")
    debugger.start(model)
    model(ones(2, 4))
    debugger.stop()
    (problem,) = read_dump(tmp_path / "dump/step0/rank0").meta["problems"]
    assert problem["message"] == "Module.OptimizedModule runs compiled: what runs inside it is not recorded"


def whole(model: Mlp, x: Tensor, use_reentrant: bool) -> Any:
    return checkpoint(model, x, use_reentrant=use_reentrant)


def layer_by_layer(model: Mlp, x: Tensor, use_reentrant: bool) -> Any:
    return model.norm(checkpoint(model.body, x * 2, use_reentrant=use_reentrant))


@pytest.mark.parametrize("run", [whole, layer_by_layer])
def test_a_checkpoint_around_everything_hides_no_modules_gradients(
    asked_for: AskedFor, tmp_path: Path, run: Any
) -> None:
    dumps: list[DumpOnDisk] = []
    debugger, x = asked_for(), torch.linspace(-1, 1, 8).view(2, 4).requires_grad_()
    for use_reentrant in (False, True):
        torch.manual_seed(3)
        model = Mlp()
        debugger.start(model)
        run(model, x, use_reentrant).square().sum().backward()
        debugger.stop()
        dumps.append(read_dump(tmp_path / f"dump/step{len(dumps)}/rank0"))
        debugger.step()
    kept, reentrant = dumps
    flowed = {entry for entry in kept.data if "backward" in entry or "_grad" in entry}
    assert len(flowed) >= 7
    assert {entry: reentrant.data.get(entry) for entry in flowed} == {entry: kept.data[entry] for entry in flowed}
    assert reentrant.meta["problems"] == []


def test_evaluation_without_gradients_waits_for_no_backward(asked_for: AskedFor, tmp_path: Path) -> None:
    model, debugger = Mlp(), asked_for()
    debugger.start(model)
    with torch.no_grad():
        model(ones(2, 4))
    model(ones(2, 4)).sum().backward()
    debugger.stop()
    data = read_dump(tmp_path / "dump/step0/rank0").data
    assert [entry for entry in data if "LayerNorm.backward" in entry] == ["Module.norm.LayerNorm.backward.1"]


def test_what_is_no_model_is_refused_in_one_sentence(
    asked_for: AskedFor, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    debugger = asked_for()
    for model in (5, "x", [nn.Identity(), 5]):
        debugger.start(model)  # type: ignore[arg-type]
        debugger.stop()
    assert not list(tmp_path.glob("dump/step*"))
    assert [text for text in caplog.messages if "start() was given a int to record; pass a torch.nn.Module" in text]
