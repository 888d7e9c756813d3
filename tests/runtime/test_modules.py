"""What is recorded of a model: entries, order, nesting, call stacks."""

import contextlib
import gc
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from probe_patch.runtime.debugger import PrecisionDebugger
from tests.runtime.conftest import Record
from tests.runtime.dumps import read_dump
from tests.runtime.toys import Around, Echo, Fails, InPlace, Mlp, Recovers, Shared, ones


def test_every_submodule_has_an_entry_when_it_ends_and_a_parent(record: Record) -> None:
    dump = record(Mlp(), ones(2, 4))
    assert list(dump.data) == [
        "Module.body.up.Linear.forward.0",
        "Module.body.down.Linear.forward.0",
        "Module.body.Sequential.forward.0",
        "Module.norm.LayerNorm.forward.0",
    ]
    assert dump.construct == {
        "Module.body.Sequential.forward.0": None,
        "Module.body.up.Linear.forward.0": "Module.body.Sequential.forward.0",
        "Module.body.down.Linear.forward.0": "Module.body.Sequential.forward.0",
        "Module.norm.LayerNorm.forward.0": None,
    }
    assert next(iter(dump.construct)) == "Module.body.Sequential.forward.0"


def test_an_entry_has_inputs_outputs_and_its_own_parameters(record: Record) -> None:
    dump = record(Around(nn.Linear(4, 1)), ones(3, 4))
    entry = dump.data["Module.inner.Linear.forward.0"]
    assert list(entry) == ["input_args", "input_kwargs", "output", "parameters"]
    assert entry["input_args"][0]["shape"] == [3, 4]
    assert entry["output"][0]["shape"] == [3, 1]
    assert {name: tensor["shape"] for name, tensor in entry["parameters"].items()} == {"weight": [1, 4], "bias": [1]}
    assert entry["parameters"]["weight"]["requires_grad"] is True


def test_the_header_is_msprobes(record: Record) -> None:
    dump = record(Mlp(), ones(1, 4)).dump
    assert list(dump) == ["task", "level", "framework", "dump_data_dir", "data"]
    assert list(dump.values())[:4] == ["statistics", "L0", "pytorch", None]


def test_keyword_arguments_are_recorded_by_name(record: Record) -> None:
    entry = record(Around(Echo()), x=ones(4), mask=None).data["Module.inner.Echo.forward.0"]
    assert entry["input_args"] == []
    assert (entry["input_kwargs"]["x"]["Norm"], entry["input_kwargs"]["mask"]) == (2.0, None)
    assert (entry["output"], entry["parameters"]) == ([None], {})


def test_inputs_are_measured_before_an_in_place_module_overwrites_them(record: Record) -> None:
    data = record(InPlace(), torch.tensor([-4.0, 2.0])).data
    relu, half = data["Module.relu.ReLU.forward.0"], data["Module.halve.Halve.forward.0"]
    assert (relu["input_args"][0]["Min"], relu["output"][0]["Min"]) == (-2.0, 0.0)
    assert (half["input_args"][0]["Max"], half["output"][0]["Max"]) == (2.0, 1.0)


def test_a_module_under_two_names_counts_under_its_first(record: Record) -> None:
    data = record(Shared(), ones(1, 4)).data
    assert list(data) == [
        "Module.first.Linear.forward.0",
        "Module.first.Linear.forward.1",
        "Module.tied.Linear.forward.0",
    ]
    first, tied = data["Module.first.Linear.forward.0"], data["Module.tied.Linear.forward.0"]
    assert first["parameters"]["weight"] == tied["parameters"]["weight"]


def test_a_list_of_chunks_always_has_their_index(debugger: PrecisionDebugger, tmp_path: Path) -> None:
    chunks = [Around(Echo()), Around(Echo())]
    debugger.start(chunks[:1])
    chunks[0]()
    debugger.stop()
    debugger.step()
    debugger.start(chunks)
    for chunk in chunks:
        chunk()
    debugger.stop()
    dumps = [read_dump(tmp_path / "dump" / step / "rank0") for step in ("step0", "step1")]
    assert list(dumps[0].data) == ["Module.0.inner.Echo.forward.0"]
    assert list(dumps[1].data) == ["Module.0.inner.Echo.forward.0", "Module.1.inner.Echo.forward.0"]


def test_a_module_in_two_chunks_counts_under_its_first(debugger: PrecisionDebugger, tmp_path: Path) -> None:
    shared = Echo()
    chunks = [Around(shared), Around(shared)]
    debugger.start(chunks)
    chunks[1]()
    debugger.stop()
    assert list(read_dump(tmp_path / "dump/step0/rank0").data) == ["Module.0.inner.Echo.forward.0"]


def test_calls_of_one_place_share_a_stack_and_our_frames_are_not_in_it(record: Record) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    dump = record(model, ones(1, 4))
    assert list(dump.stack) == ["0"]
    entries, frames = dump.stack["0"]
    assert entries == ["Module.0.Linear.forward.0", "Module.1.ReLU.forward.0"]
    assert frames[0].startswith("File ") and "in inner, \n args_kwargs_result = hook(" in frames[0]
    assert any(frame.startswith(f"File {__file__}, line ") and "record(model, ones(1, 4))" in frame for frame in frames)
    assert not any("probe_patch/runtime" in frame.split(", line")[0].replace("tests/runtime", "") for frame in frames)


def test_different_places_have_different_stacks(record: Record) -> None:
    dump = record(Mlp(), ones(1, 4))
    stack_of = {entry: number for number, (entries, _) in dump.stack.items() for entry in entries}
    assert stack_of["Module.body.up.Linear.forward.0"] == stack_of["Module.body.down.Linear.forward.0"]
    assert stack_of["Module.body.up.Linear.forward.0"] != stack_of["Module.norm.LayerNorm.forward.0"]
    assert set(stack_of) == set(dump.data)


def test_an_exception_inside_a_module_does_not_move_later_ones(record: Record) -> None:
    model = Recovers()
    model.risky.error = ValueError("planned")
    dump = record(model, ones(1, 4))
    assert dump.construct == {
        "Module.inner.Around.forward.0": None,
        "Module.risky.Fails.forward.0": "Module.inner.Around.forward.0",
        "Module.after.Linear.forward.0": None,
        "Module.after.Linear.forward.1": None,
    }
    failed = dump.data["Module.risky.Fails.forward.0"]
    assert failed["input_args"][0]["Norm"] == 2.0
    assert "output" not in failed
    assert "output" in dump.data["Module.after.Linear.forward.0"]


def test_a_module_called_while_an_exception_is_handled_has_its_output(record: Record) -> None:
    class Handling(Recovers):
        def forward(self, x: torch.Tensor) -> Any:
            try:
                raise ValueError("planned")
            except ValueError:
                return self.after(x)

    assert "output" in record(Handling(), ones(1, 4)).data["Module.after.Linear.forward.0"]


def test_an_interrupt_caught_inside_a_module_does_not_move_what_follows_it(record: Record) -> None:
    class Swallowing(Around):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with contextlib.suppress(KeyboardInterrupt):
                self.inner(x)
            return x

    fails = Fails()
    fails.error = KeyboardInterrupt()
    dump = record(nn.Sequential(Swallowing(Around(fails)), Echo()), ones(1))
    assert dump.construct["Module.1.Echo.forward.0"] is None


@pytest.mark.parametrize("error", [ValueError("planned"), KeyboardInterrupt()])
def test_a_pass_that_failed_leaves_no_parent_for_the_next(
    debugger: PrecisionDebugger, tmp_path: Path, error: BaseException
) -> None:
    fails = Fails()
    model = Around(Around(fails))
    fails.error = error
    debugger.start(model)
    with pytest.raises(type(error)) as caught:
        model(ones(1))
    assert caught.value is error
    fails.error = None
    model(ones(1))
    debugger.stop()
    dump = read_dump(tmp_path / "dump" / "step0" / "rank0")
    assert dump.construct["Module.inner.Around.forward.1"] is None
    assert "input_args" in dump.data["Module.inner.inner.Fails.forward.0"]


def test_a_recomputed_forward_is_one_more_call(debugger: PrecisionDebugger, tmp_path: Path) -> None:
    linear = nn.Linear(4, 4)

    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = linear

        def forward(self, x: torch.Tensor) -> Any:
            return checkpoint(self.linear, x, use_reentrant=False)

    model = Checkpointed()
    debugger.start(model)
    model(ones(1, 4)).sum().backward()
    debugger.stop()
    dump = read_dump(tmp_path / "dump" / "step0" / "rank0")
    assert dump.construct == {"Module.linear.Linear.forward.0": None, "Module.linear.Linear.forward.1": None}


def test_no_activation_outlives_its_use(debugger: PrecisionDebugger) -> None:
    model = Around(nn.Identity())
    debugger.start(model)
    activation = ones(3)
    gone = weakref.ref(activation)
    model(activation)
    del activation
    gc.collect()
    assert gone() is None
    debugger.stop()
