"""What is recorded of a model: entries, order, nesting, call stacks."""

import contextlib
import gc
import json
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from probe_patch.runtime.capture.names import named_modules
from probe_patch.runtime.debugger import PrecisionDebugger
from probe_patch.runtime.empty import NOTHING_CHOSEN, NOTHING_FLOWED_BACK
from tests.runtime.conftest import Configured, Record
from tests.runtime.dumps import DumpOnDisk, read_dump
from tests.runtime.toys import Around, Echo, Fails, InPlace, Mlp, Recovers, Shared, ones


def test_every_module_has_an_entry_when_it_ends_and_a_parent(record: Record) -> None:
    dump = record(Mlp(), ones(2, 4))
    assert list(dump.data) == [
        "Module.body.up.Linear.forward.0",
        "Module.body.down.Linear.forward.0",
        "Module.body.Sequential.forward.0",
        "Module.norm.LayerNorm.forward.0",
        "Module.Mlp.forward.0",
    ]
    assert dump.construct == {
        "Module.Mlp.forward.0": None,
        "Module.body.Sequential.forward.0": "Module.Mlp.forward.0",
        "Module.body.up.Linear.forward.0": "Module.body.Sequential.forward.0",
        "Module.body.down.Linear.forward.0": "Module.body.Sequential.forward.0",
        "Module.norm.LayerNorm.forward.0": "Module.Mlp.forward.0",
    }
    assert list(dump.construct)[:2] == ["Module.Mlp.forward.0", "Module.body.Sequential.forward.0"]


class Scaling(nn.Module):
    """A root with a parameter of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(3 * ones(1))

    def forward(self, x: torch.Tensor, *, shift: float) -> torch.Tensor:
        return x * self.scale + shift


def test_the_root_is_recorded_as_any_module(record: Record) -> None:
    dump = record(Scaling(), ones(4), shift=1.0)
    entry = dump.data["Module.Scaling.forward.0"]
    assert (entry["input_args"][0]["Norm"], entry["input_kwargs"]["shift"]["value"]) == (2.0, 1.0)
    assert (entry["output"][0]["Max"], entry["parameters"]["scale"]["Max"]) == (4.0, 3.0)
    assert (list(dump.data), dump.construct) == (["Module.Scaling.forward.0"], {"Module.Scaling.forward.0": None})


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
        "Module.Shared.forward.0",
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
    names = [[f"Module.{chunk}.inner.Echo.forward.0", f"Module.{chunk}.Around.forward.0"] for chunk in (0, 1)]
    assert [list(dump.data) for dump in dumps] == [names[0], names[0] + names[1]]
    assert dumps[1].construct == {
        entry: parent for inner, root in names for entry, parent in ((root, None), (inner, root))
    }


def test_a_module_in_two_chunks_counts_under_its_first(debugger: PrecisionDebugger, tmp_path: Path) -> None:
    shared = Echo()
    chunks = [Around(shared), Around(shared)]
    debugger.start(chunks)
    chunks[1]()
    debugger.stop()
    assert list(read_dump(tmp_path / "dump/step0/rank0").data) == [
        "Module.0.inner.Echo.forward.0",
        "Module.1.Around.forward.0",
    ]


def test_calls_of_one_place_share_a_stack_and_our_frames_are_not_in_it(record: Record) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    dump = record(model, ones(1, 4))
    assert list(dump.stack) == ["0", "1"]
    assert dump.stack["0"][0] == ["Module.Sequential.forward.0"]
    entries, frames = dump.stack["1"]
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
        "Module.Recovers.forward.0": None,
        "Module.inner.Around.forward.0": "Module.Recovers.forward.0",
        "Module.risky.Fails.forward.0": "Module.inner.Around.forward.0",
        "Module.after.Linear.forward.0": "Module.Recovers.forward.0",
        "Module.after.Linear.forward.1": "Module.Recovers.forward.0",
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
    assert dump.construct["Module.1.Echo.forward.0"] == "Module.Sequential.forward.0"


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
    assert dump.construct["Module.inner.Around.forward.1"] == "Module.Around.forward.1"
    assert dump.construct["Module.Around.forward.1"] is None
    assert "input_args" in dump.data["Module.inner.inner.Fails.forward.0"]


def recompute_from_scratch(function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """As Megatron does it: an autograd function that runs the forward a second time in its backward."""

    class Recomputing(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, given: torch.Tensor) -> torch.Tensor:
            context.save_for_backward(given)
            with torch.no_grad():
                return function(given)

        @staticmethod
        def backward(context: Any, *gradients: torch.Tensor) -> Any:
            given = context.saved_tensors[0].detach().requires_grad_()
            with torch.enable_grad():
                again = function(given)
            torch.autograd.backward(again, gradients)
            return given.grad

    return Recomputing.apply(x)  # type: ignore[no-any-return,no-untyped-call]


@pytest.mark.parametrize(
    "recompute",
    [
        lambda function, x: checkpoint(function, x, use_reentrant=True),
        lambda function, x: checkpoint(function, x, use_reentrant=False),
        recompute_from_scratch,
    ],
    ids=["reentrant", "not reentrant", "Megatron's"],
)
def test_recomputed_forwards_are_counted_but_are_no_further_calls(
    configured: Configured, tmp_path: Path, recompute: Callable[..., torch.Tensor]
) -> None:
    debugger = configured("L0", "forward")

    class Checkpointed(Mlp):
        is_checkpointed = False

        def forward(self, x: torch.Tensor) -> Any:
            return self.norm(recompute(self.body, x) if self.is_checkpointed else self.body(x))

    model = Checkpointed()
    dumps: list[DumpOnDisk] = []
    for model.is_checkpointed in (False, True):
        debugger.start(model)
        for _ in range(3):
            model(ones(2, 4).requires_grad_()).sum().backward()
        debugger.stop()
        dumps.append(read_dump(tmp_path / f"dump/step{len(dumps)}/rank0"))
        debugger.step()
    plain, checkpointed = dumps
    assert list(checkpointed.data) == list(plain.data)
    assert checkpointed.construct == plain.construct
    assert all(entry["output"][0]["Norm"] is not None for entry in checkpointed.data.values())
    assert (plain.meta["recomputed"], checkpointed.meta["recomputed"]) == (0, 3 * 3)
    assert (len(plain.data), checkpointed.meta["problems"]) == (3 * 5, [])


class Reentrant(nn.Module):
    """Its child calls it once more before it goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Around(Echo())
        self.calls_back = Around(Echo())
        self.calls_back.forward = self.again  # type: ignore[method-assign]

    def again(self, depth: int, error: Exception | None) -> int:
        if depth:
            with contextlib.suppress(ValueError):
                self(depth - 1, error)
        elif error is not None:
            raise error
        self.inner()
        return depth

    def forward(self, depth: int, error: Exception | None) -> Any:
        return self.calls_back(depth, error)


@pytest.mark.parametrize("error", [None, ValueError("planned")])
def test_a_root_called_from_its_own_child_keeps_the_outer_calls(record: Record, error: Exception | None) -> None:
    dump = record(Reentrant(), 2, error)
    outer = [f"Module.calls_back.Around.forward.{number}" for number in range(3)]
    roots = [f"Module.Reentrant.forward.{number}" for number in range(3)]
    assert [dump.construct[entry] for entry in outer] == roots
    assert [dump.construct[entry] for entry in roots] == [None, *outer[:2]]
    assert dump.meta["micro_batches"] == 1
    assert ["output" in dump.data[entry] for entry in outer] == [True, True, error is None]
    inner = [parent for entry, parent in dump.construct.items() if entry.startswith("Module.inner.Around")]
    assert inner == (outer[::-1] if error is None else outer[1::-1])


class Batches(Around):
    """Its loss is a module's too, and is reckoned outside of the pass."""

    def __init__(self) -> None:
        super().__init__(nn.Linear(4, 4))
        self.loss = nn.MSELoss()


def micro_batches_of(folder: Path, *without: str) -> dict[str, int]:
    read = read_dump(folder).micro_batches
    return {entry: number for entry, number in read.items() if not any(part in entry for part in without)}


def test_micro_batches_are_those_of_the_forward_also_where_backwards_come_late(
    debugger: PrecisionDebugger, tmp_path: Path
) -> None:
    model = Batches()
    debugger.start(model)
    waiting = []
    for number in range(3):
        waiting.append(model.loss(model(ones(2, 4)), ones(2, 4)))
        if number:  # One forward, one backward, as a pipeline stage does it.
            waiting.pop(0).backward()
    waiting.pop().backward()
    debugger.stop()
    names = ("Module.Batches", "Module.inner.Linear", "Module.loss.MSELoss")
    folder = tmp_path / "dump/step0/rank0"
    assert micro_batches_of(folder) == {
        f"{name}.{direction}.{number}": number
        for name in names
        for direction in ("forward", "backward")
        for number in range(3)
    }
    construct = json.loads((folder / "construct.json").read_text())
    assert next(iter(construct.items())) == ("megatron_micro_step_number", 2)
    assert construct["Module.inner.Linear.backward.1"] == ["Module.Batches.backward.1", 1]
    assert construct["Module.loss.MSELoss.forward.2"] == [None, 2]
    assert read_dump(folder).meta["micro_batches"] == 3


def test_each_chunk_counts_its_own_passes(debugger: PrecisionDebugger, tmp_path: Path) -> None:
    chunks = [Around(nn.Identity()), Around(nn.Identity())]
    debugger.start(chunks)
    chunks[1].inner(ones(1))  # Before any pass.
    for chunk in (0, 0, 1, 1, 0):
        chunks[chunk](ones(1))
    debugger.stop()
    found = micro_batches_of(tmp_path / "dump/step0/rank0", "Around")
    assert found == {
        "Module.1.inner.Identity.forward.0": 0,
        **{f"Module.0.inner.Identity.forward.{number}": number for number in range(3)},
        **{f"Module.1.inner.Identity.forward.{number + 1}": number for number in range(2)},
    }
    assert read_dump(tmp_path / "dump/step0/rank0").meta["micro_batches"] == 3


@pytest.mark.parametrize("passes", [0, 1])
def test_one_micro_batch_needs_no_number(debugger: PrecisionDebugger, tmp_path: Path, passes: int) -> None:
    model = Around(nn.Identity())
    debugger.start(model)
    for _ in range(passes):
        model(ones(1))
    model.inner(ones(1))
    debugger.stop()
    construct = json.loads((tmp_path / "dump/step0/rank0/construct.json").read_text())
    assert set(construct.values()) <= {None, "Module.Around.forward.0"}
    assert read_dump(tmp_path / "dump/step0/rank0").meta["micro_batches"] == passes


def test_a_second_start_in_a_step_goes_on_counting_micro_batches(debugger: PrecisionDebugger, tmp_path: Path) -> None:
    model = Around(nn.Identity())
    for _ in range(2):
        debugger.start(model)
        model(ones(1))
        debugger.stop()
    assert list(micro_batches_of(tmp_path / "dump/step0/rank0").values()) == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("data_mode", "section", "problem"),
    [
        (["backward"], {}, NOTHING_FLOWED_BACK),
        ([], {"list": ["Elsewhere"]}, NOTHING_CHOSEN),
        (["backward"], {"scope": ["Module.a.B.forward.0", "Module.a.B.forward.1"]}, NOTHING_FLOWED_BACK),
    ],
)
def test_an_empty_dump_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data_mode: list[str], section: dict[str, Any], problem: str
) -> None:
    monkeypatch.setenv("RANK", "0")
    config = tmp_path / "config.json"
    chosen = {"data_mode": data_mode, **section}
    config.write_text(json.dumps({"level": "L0", "dump_path": str(tmp_path / "dump"), "statistics": chosen}))
    debugger, model = PrecisionDebugger(config), Mlp()
    debugger.start(model)
    model(ones(2, 4))
    debugger.stop()
    dump = read_dump(tmp_path / "dump/step0/rank0")
    assert (dump.data, [one["message"] for one in dump.meta["problems"]]) == ({}, [problem])


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


class Registers(nn.Module):
    """Has a way of its own to register hooks."""

    def __init__(self) -> None:
        super().__init__()
        self.registered: list[Any] = []

    def register_forward_pre_hook(self, hook: Any, **how: Any) -> Any:
        self.registered.append(hook)
        return super().register_forward_pre_hook(hook, **how)

    def register_forward_hook(self, hook: Any, **how: Any) -> Any:
        self.registered.append(hook)
        return super().register_forward_hook(hook, **how)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


def test_a_class_that_registers_hooks_in_its_own_way_is_asked(record: Record) -> None:
    registers = Registers()
    dump = record(nn.Sequential(registers), ones(1))
    assert "output" in dump.data["Module.0.Registers.forward.0"]
    assert len(registers.registered) == 2
    assert not registers._forward_hooks
    assert not registers._forward_pre_hooks


class Numbered(nn.ModuleList):
    """Gives the modules in it names of its own."""

    def named_modules(self, *how: Any, **more: Any) -> Any:
        for name, module in super().named_modules(*how, **more):
            yield name.replace("numbered.", "numbered.no"), module


def holding(**children: nn.Module | None) -> nn.Module:
    module = nn.Module()
    for name, child in children.items():
        module.register_module(name, child)
    return module


SHARED = nn.Linear(1, 1)
TREES = {
    "one module": nn.Linear(1, 1),
    "deep": nn.Sequential(nn.Sequential(nn.Linear(1, 1), nn.ReLU()), holding(a=nn.ReLU(), b=holding())),
    "shared": holding(first=holding(inner=SHARED), inner=SHARED, first_again=SHARED),
    "none": holding(missing=None, there=nn.ReLU()),
    "names of its own": holding(numbered=Numbered([nn.ReLU(), nn.ReLU()]), last=nn.ReLU()),
}


@pytest.mark.parametrize("tree", TREES)
def test_modules_have_the_names_that_torch_gives_them(tree: str) -> None:
    root = TREES[tree]
    names = [(f"Module.{name}" if name else "Module", module) for name, module in root.named_modules()]
    expected = [(f"{name}.{type(module).__name__}", id(module)) for name, module in names]
    assert [(named.name.label, id(named.module)) for named in named_modules(root)] == expected
