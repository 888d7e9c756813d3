"""``with debugger.phase(…)``: a folder of its own for each named stretch of a program."""

from pathlib import Path

import pytest
import torch
from torch import nn

from probe_patch.runtime.debugger import PrecisionDebugger
from tests.runtime.conftest import AskedFor
from tests.runtime.dumps import read_dump
from tests.runtime.toys import Around, Echo, Mlp, ones

ENTRY = "Module.inner.Echo.forward.{}"


@pytest.fixture
def model() -> nn.Module:
    return Around(Echo())


def inner_entries(folder: Path) -> list[str]:
    return [entry for entry in read_dump(folder).data if ".inner." in entry]


def test_each_phase_has_its_folder_and_its_counters(
    debugger: PrecisionDebugger, tmp_path: Path, model: nn.Module
) -> None:
    for _ in range(2):
        for name, times in (("ref", 1), ("actor", 2)):
            with debugger.phase(name, model):
                for _ in range(times):
                    model()
        debugger.step()
    for step in (0, 1):
        assert inner_entries(tmp_path / f"dump/ref/step{step}/rank0") == [ENTRY.format(0)]
        assert inner_entries(tmp_path / f"dump/actor/step{step}/rank0") == [ENTRY.format(0), ENTRY.format(1)]
    assert read_dump(tmp_path / "dump/ref/step0/rank0").meta["phase"] == "ref"


def test_a_phase_that_comes_again_in_one_step_is_gone_on_with(
    debugger: PrecisionDebugger, tmp_path: Path, model: nn.Module
) -> None:
    for _ in range(2):
        with debugger.phase("ref", model):
            model()
    dump = read_dump(tmp_path / "dump/ref/step0/rank0")
    assert (len(dump.data), dump.meta["problems"]) == (4, [])


def test_a_phase_inside_another_one_interrupts_it(
    debugger: PrecisionDebugger, tmp_path: Path, model: nn.Module
) -> None:
    with debugger.phase("outer", model):
        model()
        with debugger.phase("inner", model):
            model()
        model()
    assert not model.inner._forward_hooks  # type: ignore[union-attr]
    outer, inner = (read_dump(tmp_path / f"dump/{name}/step0/rank0") for name in ("outer", "inner"))
    assert (len(outer.data), len(inner.data)) == (4, 2)
    assert outer.meta["problems"] == inner.meta["problems"] == []


def test_a_phase_inside_itself_is_one_phase(debugger: PrecisionDebugger, tmp_path: Path, model: nn.Module) -> None:
    with debugger.phase("ref", model):
        with debugger.phase("ref", model):
            model()
        model()
    assert len(read_dump(tmp_path / "dump/ref/step0/rank0").data) == 4


def test_a_phase_between_start_and_stop_interrupts_that(
    debugger: PrecisionDebugger, tmp_path: Path, model: nn.Module
) -> None:
    debugger.start(model)
    with debugger.phase("ref", model):
        model()
    model()
    debugger.stop()
    assert len(read_dump(tmp_path / "dump/step0/rank0").data) == len(read_dump(tmp_path / "dump/ref/step0/rank0").data)


@pytest.mark.parametrize("error", [ValueError("planned"), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_an_exception_is_written_down_and_passes_on(
    debugger: PrecisionDebugger, tmp_path: Path, model: nn.Module, error: BaseException
) -> None:
    with pytest.raises(type(error)) as raised, debugger.phase("ref", model):
        model()
        raise error
    assert raised.value is error
    dump = read_dump(tmp_path / "dump/ref/step0/rank0")
    assert (dump.meta["ended_by_exception"], len(dump.data)) == (type(error).__name__, 2)
    assert not model.inner._forward_hooks  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["", "a/b", "..", "step0", "step", ".hidden", "x.replaced", "x" * 61, "a b", None, 3])
def test_a_name_that_is_no_folders_is_said_once_and_the_block_runs(
    debugger: PrecisionDebugger, tmp_path: Path, model: nn.Module, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    ran = []
    for _ in range(2):
        with debugger.phase(name, model):
            ran.append(model())
    assert len(ran) == 2
    assert [text for text in caplog.messages if f"{name!r} is no name of a phase" in text] != []
    assert len(caplog.messages) == 1
    assert not (tmp_path / "dump").exists()


@pytest.mark.parametrize("name", ["ref", "actor_train", "pass-2", "v1.5", "Größe", "x" * 60])
def test_names_of_folders(debugger: PrecisionDebugger, tmp_path: Path, model: nn.Module, name: str) -> None:
    with debugger.phase(name, model):
        model()
    assert (tmp_path / "dump" / name / "step0" / "rank0" / "dump.json").exists()


def test_steps_that_are_not_chosen_have_no_phases(asked_for: AskedFor, tmp_path: Path, model: nn.Module) -> None:
    debugger = asked_for(step=[1])
    for _ in range(2):
        with debugger.phase("ref", model):
            model()
        debugger.step()
    assert [path.name for path in (tmp_path / "dump/ref").glob("step*")] == ["step1"]


def test_a_phase_of_functions_needs_no_model(asked_for: AskedFor, tmp_path: Path) -> None:
    with asked_for(level="L1").phase("loss"):
        torch.exp(ones(2))
    assert list(read_dump(tmp_path / "dump/loss/step0/rank0").data) == ["Torch.exp.0.forward"]


def test_the_answer_of_a_model_is_what_it_was(debugger: PrecisionDebugger) -> None:
    model = Mlp()
    expected = model(ones(2, 4))
    with debugger.phase("ref", model):
        assert torch.equal(model(ones(2, 4)), expected)


def test_of_a_phase_that_failed_and_came_again_the_failure_stays_said(
    debugger: PrecisionDebugger, tmp_path: Path, model: nn.Module
) -> None:
    with pytest.raises(ValueError, match="planned"), debugger.phase("train", model):
        raise ValueError("planned")
    with debugger.phase("train", model):
        model()
    assert read_dump(tmp_path / "dump/train/step0/rank0").meta["ended_by_exception"] == "ValueError"
