"""Failures of the dump stay in the dump: noted in meta.json, said once, never raised into the run."""

import itertools
import math
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from probe_patch.runtime import dump as dump_module
from probe_patch.runtime.capture import gradients
from probe_patch.runtime.capture.arrivals import Arrival
from probe_patch.runtime.capture.forward_hooks import ForwardHooks
from probe_patch.runtime.capture.forwards import Call
from probe_patch.runtime.capture.records import Recorder
from probe_patch.runtime.capture.shares import Passing
from probe_patch.runtime.capture.stacks import CallStacks
from probe_patch.runtime.debugger import PrecisionDebugger
from probe_patch.runtime.files import write_atomically
from probe_patch.runtime.stats.table import StatisticsTable
from tests.interpreted import Replace
from tests.runtime.conftest import AskedFor, Record
from tests.runtime.dumps import DumpOnDisk, read_dump
from tests.runtime.toys import Mlp, ones


def broken(*_: object, **__: object) -> Any:
    raise RuntimeError("broken on purpose")


def problems_of(dump: DumpOnDisk) -> dict[str, int]:
    return {problem["kind"]: problem["count"] for problem in dump.meta["problems"]}


@pytest.mark.parametrize(
    ("owner", "method", "kind", "count"),
    [
        (StatisticsTable, "add", "measuring a tensor", 16),
        (StatisticsTable, "read", "reading the statistics", 1),
        (CallStacks, "add", "recording a module's inputs", 5),
        (ForwardHooks, "after", "hooking a module", 5),
    ],
)
def test_a_failing_part_is_noted_and_the_rest_is_written(
    record: Record,
    replace: Replace,
    caplog: pytest.LogCaptureFixture,
    owner: type,
    method: str,
    kind: str,
    count: int,
) -> None:
    replace(owner, method, broken)
    dump = record(Mlp(), ones(2, 4))
    assert problems_of(dump) == {kind: count}
    (said,) = [text for text in caplog.messages if "broken on purpose" in text]
    assert said.startswith(f"probe-patch: {kind}: ")
    assert said.endswith("RuntimeError: broken on purpose; the run goes on")


def test_without_statistics_the_records_are_still_there(record: Record, replace: Replace) -> None:
    replace(StatisticsTable, "read", broken)
    output = record(Mlp(), ones(2, 4)).data["Module.norm.LayerNorm.forward.0"]["output"][0]
    assert (output["shape"], output["Max"]) == ([2, 4], None)


def test_an_entry_that_cannot_be_encoded_is_empty_and_the_others_are_whole(record: Record, replace: Replace) -> None:
    def unwritable(recorder: Recorder, call: Call, value: object) -> Any:
        whole = output(recorder, call, value)
        return object() if isinstance(value, Tensor) and value.shape == (2, 8) else whole

    output = Recorder.output
    replace(Recorder, "output", unwritable)
    dump = record(Mlp(), ones(2, 4))
    empty: dict[str, object] = {"input_args": [], "input_kwargs": {}, "output": []}
    assert dump.data["Module.body.up.Linear.forward.0"] == empty
    assert [entry for entry, found in dump.data.items() if found == empty] == ["Module.body.up.Linear.forward.0"]
    assert problems_of(dump) == {"encoding an entry": 1}
    assert dump.meta["entries"] == len(dump.construct) == 5


def test_a_full_disk_for_one_file_leaves_the_others(
    debugger: PrecisionDebugger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(path: Path, pieces: Iterable[str]) -> None:
        if path.name == "dump.json":
            raise OSError(28, "No space left on device")
        write_atomically(path, pieces)

    monkeypatch.setattr("probe_patch.runtime.dump.write_atomically", full)
    model = Mlp()
    debugger.start(model)
    model(ones(2, 4))
    debugger.stop()
    folder = tmp_path / "dump/step0/rank0"
    assert sorted(path.name for path in folder.iterdir()) == ["construct.json", "meta.json", "stack.json"]
    assert '"kind": "writing dump.json"' in (folder / "meta.json").read_text()
    assert f"writing dump.json: OSError: [Errno 28] No space left on device, in {folder}" in caplog.text


def test_a_dump_path_that_cannot_be_made_is_said_and_the_model_stays_untouched(
    debugger: PrecisionDebugger, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    debugger.config.dump_path = tmp_path / "file" / "dump"
    model = Mlp()
    debugger.start(model)
    assert not model.norm._forward_hooks
    debugger.stop()
    debugger.step()
    assert "starting: NotADirectoryError" in caplog.text


class Sticky(OrderedDict[int, Any]):
    """Hooks of a module that will not go."""

    def __delitem__(self, _: int) -> None:
        raise RuntimeError("broken on purpose")


def test_a_modules_hook_that_will_not_go_does_not_keep_the_others(debugger: PrecisionDebugger, tmp_path: Path) -> None:
    model = Mlp()
    debugger.start(model)
    output = model(ones(2, 4).requires_grad_())
    model.norm._forward_pre_hooks = Sticky(model.norm._forward_pre_hooks)
    debugger.stop()
    others = [module for module in model.modules() if module is not model.norm]
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in others)
    assert not any(parameter._backward_hooks for parameter in model.parameters())
    assert not output._backward_hooks
    assert problems_of(read_dump(tmp_path / "dump/step0/rank0")) == {"removing a hook": 1}


# Of the first module that ends: its output's, then its node's.
@pytest.mark.parametrize("number", [1, 2], ids=["a tensor's", "a node's"])
def test_a_gradients_hook_that_will_not_go_does_not_keep_the_others(
    debugger: PrecisionDebugger, tmp_path: Path, replace: Replace, number: int
) -> None:
    model = Mlp()
    debugger.start(model)
    output = model(ones(2, 4).requires_grad_())
    original, met = gradients._take_off, []

    def one_fails(session: Any, hooks: Any) -> None:
        met.append([type(hook) for hook in hooks.values()])
        if len(met) == number:
            raise RuntimeError("broken on purpose")
        original(session, hooks)

    replace(gradients, "_take_off", one_fails)
    debugger.stop()
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert not any(parameter._backward_hooks for parameter in model.parameters())
    assert not output._backward_hooks
    # Two of the three outputs are those of two modules each.
    assert met == [[Arrival], [Passing]] * 3
    assert problems_of(read_dump(tmp_path / "dump/step0/rank0")) == {"removing a hook": 1}


def test_a_failing_capture_changes_nothing_for_the_run(debugger: PrecisionDebugger, replace: Replace) -> None:
    model = Mlp()
    expected = model(ones(2, 4))
    replace(CallStacks, "add", broken)
    replace(StatisticsTable, "add", broken)
    debugger.start(model)
    assert torch.equal(model(ones(2, 4)), expected)
    debugger.stop()


def test_problems_belong_to_the_dump_they_happened_in(
    debugger: PrecisionDebugger, tmp_path: Path, replace: Replace
) -> None:
    def broken_at_first(stacks: CallStacks, call: Call) -> None:
        if name == "ref":
            broken()
        add(stacks, call)

    add = CallStacks.add
    replace(CallStacks, "add", broken_at_first)
    model = Mlp()
    counts = []
    for name in ("ref", "old"):
        debugger.config.dump_path = tmp_path / name
        debugger.start(model)
        model(ones(2, 4))
        debugger.stop()
        counts.append((tmp_path / name / "step0/rank0/meta.json").read_text().count("broken on purpose"))
    assert counts == [1, 0]


class Unreadable(Mapping[str, Tensor]):
    """An argument that raises whenever somebody looks into it."""

    def __getitem__(self, key: str) -> Tensor:
        raise RuntimeError("not yours to read")

    def __iter__(self) -> Iterator[str]:
        yield "key"

    def __len__(self) -> int:
        return 1


class Training(nn.Module):
    """Modules and functions, with an argument that is not theirs to read."""

    def __init__(self) -> None:
        super().__init__()
        self.mlp = Mlp()

    def forward(self, x: Tensor, extra: object = None) -> Any:
        return torch.exp(self.mlp(x))


CAPTURE = "probe_patch.runtime.capture."
LEVELS = ("L0", "L1", "mix", "debug")
TASKS: tuple[dict[str, Any], ...] = (
    {"task": "statistics"},
    {"task": "statistics", "statistics": {"summary_mode": "md5"}},
    {"task": "statistics", "statistics": {"summary_mode": "xor"}},
    {"task": "tensor"},
    {"task": "structure"},
    {"task": "nan_check"},
)
MEASURE = "probe_patch.runtime.stats.table.StatisticsTable.add"
FAULTS: dict[str, tuple[str, frozenset[str]]] = {
    "a tensor that cannot be read": (f"{CAPTURE}records.Recorder._looked_at", frozenset(LEVELS)),
    "a tensor that cannot be measured": (MEASURE, frozenset()),
    "numbers that cannot be read back": (f"{CAPTURE}records.Recorder.read", frozenset(LEVELS)),
    "a name that cannot be given": ("probe_patch.runtime.store.Store.open_call", frozenset({"L0", "L1", "mix"})),
    "a call that cannot be closed": ("probe_patch.runtime.store.Store.close_call", frozenset({"L0", "L1", "mix"})),
    "inputs whose gradients cannot be awaited": (
        f"{CAPTURE}gradients.Gradients.before",
        frozenset({"L0", "L1", "mix"}),
    ),
    "outputs whose gradients cannot be awaited": (
        f"{CAPTURE}gradients.Gradients.after",
        frozenset({"L0", "L1", "mix"}),
    ),
    "a gradient that cannot be taken": (f"{CAPTURE}gradients.Gradients.begin", frozenset({"L0", "L1", "mix"})),
    "a parameter's gradient": ("probe_patch.runtime.store.Store.parameters_gradient", frozenset({"L0", "mix"})),
    "a value that cannot be saved": (f"{CAPTURE}records.Recorder.saved", frozenset({"debug"})),
    "a call stack": (f"{CAPTURE}stacks.CallStacks.add", frozenset({"L0", "L1", "mix"})),
    "an end of step": ("probe_patch.runtime.store.Store.flush", frozenset(LEVELS)),
    "a full disk for the dump": ("dump.json", frozenset({"L0", "L1", "mix"})),
    "a full disk for what was saved": ("debug.json", frozenset({"debug"})),
    "a full disk for the call stacks": ("stack.json", frozenset({"L0", "L1", "mix"})),
    "a full disk for all": ("", frozenset(LEVELS)),
    "a full disk for tensors": ("torch.save", frozenset()),
    "a folder that cannot be had": ("probe_patch.runtime.dump.open_step", frozenset(LEVELS)),
}


def _asked() -> Iterator[tuple[str, dict[str, Any]]]:
    for level, task in itertools.product(LEVELS, TASKS):
        if level != "debug" or task["task"] in ("statistics", "tensor"):
            yield level, task


def _can_happen(fault: str, level: str, task: dict[str, Any]) -> bool:
    if task["task"] == "structure" and fault == "a tensor that cannot be read":
        return False
    if fault == "a tensor that cannot be measured":
        return "statistics" not in task and task["task"] in ("statistics", "tensor")
    if fault == "a full disk for tensors":
        return task == {"task": "tensor"}
    return level in FAULTS[fault][1]


CASES = [
    pytest.param(
        level, task, fault, id=f"{level}, {'-'.join([task['task'], *task.get('statistics', {}).values()])}, {fault}"
    )
    for level, task in _asked()
    for fault in FAULTS
    if _can_happen(fault, level, task)
]


def _break(replace: Replace, target: str) -> None:
    if target and not target.endswith(".json"):
        owner, _, name = target.rpartition(".")
        replace(resolve_name(owner), name, broken)
        return

    def full(path: Path, pieces: Iterable[str] | bytes) -> None:
        if not target or path.name == target:
            raise OSError(28, "broken on purpose")
        write_atomically(path, pieces)

    replace(dump_module, "write_atomically", full)


def train(debugger: PrecisionDebugger | None, model: Training) -> list[Tensor]:
    """A step of training, recorded or not: everything that may not change."""
    x = torch.linspace(-1, 1, 8).reshape(2, 4).requires_grad_()
    for parameter in model.parameters():
        parameter.grad = None
    if debugger is not None:
        debugger.start(model)
    output = model(x, Unreadable())
    if debugger is not None:
        debugger.save({"output": output}, "output")
        debugger.save(Unreadable(), "unreadable")
    output.sum().backward()
    if debugger is not None:
        debugger.stop()
        debugger.step()
    gradients = [parameter.grad for parameter in (x, *model.parameters())]
    return [output.detach(), *(gradient for gradient in gradients if gradient is not None)]


@pytest.mark.parametrize(("level", "task", "fault"), CASES)
def test_no_failure_of_ours_reaches_the_training_and_each_is_told(
    asked_for: AskedFor,
    tmp_path: Path,
    replace: Replace,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    level: str,
    task: dict[str, Any],
    fault: str,
) -> None:
    model = Training()
    expected = train(None, model)
    debugger = asked_for(level=level, **task)
    _break(replace, FAULTS[fault][0])
    found = train(debugger, model)
    assert len(found) == len(expected)
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))
    monkeypatch.undo()
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert not any(parameter._backward_hooks for parameter in model.parameters())
    assert torch._C._len_torch_function_stack() == 0
    said = [text for text in caplog.messages if "broken on purpose" in text]
    kinds = [text.partition(" failed (")[0] for text in said]
    assert said
    assert len(set(kinds)) == len(kinds)
    assert len([text for text in caplog.messages if "not yours to read" in text]) <= 1
    meta = tmp_path / "dump/step0/rank0/meta.json"
    if fault not in ("a full disk for all", "a folder that cannot be had"):
        assert "broken on purpose" in meta.read_text()


def test_a_run_without_faults_has_no_problems_but_the_unreadable_argument(asked_for: AskedFor, tmp_path: Path) -> None:
    """Else the table above would show nothing."""
    train(asked_for(level="mix"), Training())
    dump = read_dump(tmp_path / "dump/step0/rank0")
    assert problems_of(dump) == {"recording a value": 1}
    output = dump.data["Module.Training.forward.0"]["output"][0]
    assert math.isfinite(output["Norm"])
