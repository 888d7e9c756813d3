"""Failures of the dump stay in the dump: noted in meta.json, said once, never raised into the run."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from probe_patch.runtime.capture.records import Recorder
from probe_patch.runtime.capture.stacks import CallStacks
from probe_patch.runtime.debugger import PrecisionDebugger
from probe_patch.runtime.files import write_atomically
from probe_patch.runtime.stats.table import StatisticsTable
from tests.runtime.conftest import Record
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
        (nn.Module, "register_forward_hook", "hooking a module", 5),
    ],
)
def test_a_failing_part_is_noted_and_the_rest_is_written(
    record: Record,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    owner: type,
    method: str,
    kind: str,
    count: int,
) -> None:
    monkeypatch.setattr(owner, method, broken)
    dump = record(Mlp(), ones(2, 4))
    assert problems_of(dump) == {kind: count}
    assert [text for text in caplog.messages if "broken on purpose" in text] == [
        f"probe-patch: {kind} failed (RuntimeError: broken on purpose); the run goes on without it"
    ]


def test_without_statistics_the_records_are_still_there(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StatisticsTable, "read", broken)
    output = record(Mlp(), ones(2, 4)).data["Module.norm.LayerNorm.forward.0"]["output"][0]
    assert (output["shape"], output["Max"]) == ([2, 4], None)


def test_an_entry_that_cannot_be_encoded_is_empty_and_the_others_are_whole(
    record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unwritable(recorder: Recorder, entry: str, value: object) -> Any:
        whole = output(recorder, entry, value)
        return object() if isinstance(value, Tensor) and value.shape == (2, 8) else whole

    output = Recorder.output
    monkeypatch.setattr(Recorder, "output", unwritable)
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
    assert f"writing dump.json failed (OSError: [Errno 28] No space left on device, in {folder})" in caplog.text


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
    assert "starting failed (NotADirectoryError" in caplog.text


@pytest.mark.parametrize("stuck", ["a module's", "a tensor's"])
def test_a_hook_that_will_not_go_does_not_keep_the_others(
    debugger: PrecisionDebugger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stuck: str
) -> None:
    model = Mlp()
    on_modules = 2 + 2 * 5 + 3 * 2
    debugger.start(model)
    output = model(ones(2, 4).requires_grad_())
    original, calls = RemovableHandle.remove, []

    def first_fails(handle: RemovableHandle) -> None:
        calls.append(handle)
        if len(calls) == (1 if stuck == "a module's" else on_modules + 1):
            raise RuntimeError("broken on purpose")
        original(handle)

    monkeypatch.setattr(RemovableHandle, "remove", first_fails)
    debugger.stop()
    assert not any(module._forward_hooks for module in model.modules())
    assert not any(parameter._backward_hooks for parameter in model.parameters())
    assert not output._backward_hooks
    # Per module, one output and one node that passes the input's share on.
    assert len(calls) == on_modules + 2 * 5
    assert problems_of(read_dump(tmp_path / "dump/step0/rank0")) == {"removing a hook": 1}


def test_a_failing_capture_changes_nothing_for_the_run(
    debugger: PrecisionDebugger, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Mlp()
    expected = model(ones(2, 4))
    monkeypatch.setattr(CallStacks, "add", broken)
    monkeypatch.setattr(StatisticsTable, "add", broken)
    debugger.start(model)
    assert torch.equal(model(ones(2, 4)), expected)
    debugger.stop()


def test_problems_belong_to_the_dump_they_happened_in(
    debugger: PrecisionDebugger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Mlp()
    counts = []
    for name in ("ref", "old"):
        debugger.config.dump_path = tmp_path / name
        with monkeypatch.context() as patch:
            if name == "ref":
                patch.setattr(CallStacks, "add", broken)
            debugger.start(model)
            model(ones(2, 4))
            debugger.stop()
        counts.append((tmp_path / name / "step0/rank0/meta.json").read_text().count("broken on purpose"))
    assert counts == [1, 0]
