"""Forwards on other threads while recordings begin and end."""

import json
import math
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from probe_patch.runtime.capture.capture import Capture
from probe_patch.runtime.capture.selection import Selection
from probe_patch.runtime.capture.wanted import Wanted
from probe_patch.runtime.debugger import PrecisionDebugger
from probe_patch.runtime.problems import Problems
from probe_patch.runtime.stats.table import StatisticsTable
from probe_patch.runtime.store import Store
from tests.runtime.dumps import read_dump
from tests.runtime.toys import Around, Mlp, ones


def tensors_of(record: Any) -> Iterator[dict[str, Any]]:
    if isinstance(record, dict) and record.get("type") == "torch.Tensor":
        yield record
    elif isinstance(record, dict | list):
        for part in record.values() if isinstance(record, dict) else record:
            yield from tensors_of(part)


def test_every_number_is_right_however_forwards_and_stops_meet(
    debugger: PrecisionDebugger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slowly(table: StatisticsTable, device: torch.device) -> Any:
        reserved = reserve(table, device)
        time.sleep(0.0002)
        return reserved

    # A stop is made likely while a row is reserved and not yet written.
    reserve = StatisticsTable._reserve
    monkeypatch.setattr(StatisticsTable, "_reserve", slowly)
    model = nn.Sequential(Around(nn.Identity()), nn.Identity(), nn.Identity())
    is_over = threading.Event()

    def forwards(width: int) -> None:
        x = ones(width, width)
        while not is_over.is_set():
            model(x)

    threads = [threading.Thread(target=forwards, args=(width,)) for width in (1, 2, 3, 4)]
    for thread in threads:
        thread.start()
    steps = 0
    until = time.monotonic() + 1.0
    while time.monotonic() < until or steps < 5:
        for _ in range(3):
            debugger.start(model)
            time.sleep(0.002)
            debugger.stop()
        debugger.step()
        steps += 1
    is_over.set()
    for thread in threads:
        thread.join()
    seen = 0
    for step in range(steps):
        dump = read_dump(tmp_path / f"dump/step{step}/rank0")
        assert [problem for problem in dump.meta["problems"] if problem["kind"] != "recording"] == []
        for tensor in tensors_of(dump.data):
            seen += 1
            width = tensor["shape"][0]
            assert (tensor["Max"], tensor["Min"], tensor["Mean"], tensor["Norm"]) == (1.0, 1.0, 1.0, width)
    assert seen


class Waiting(nn.Module):
    """Stays inside its forward until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.leave = threading.Event(), threading.Event()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.entered.set()
        assert self.leave.wait(30)
        return 7 * x


def test_a_call_that_is_open_at_stop_is_written_as_far_as_it_came_and_never_again() -> None:
    waiting = Waiting()
    model = Around(waiting)
    store = Store(Problems(set()), Wanted(), Selection())
    capture = Capture(store)
    capture.attach(model)
    thread = threading.Thread(target=model, args=(ones(4),))
    thread.start()
    assert waiting.entered.wait(30)
    capture.detach()
    store.flush()
    following = Capture(store)
    following.attach(model)
    measured = store.recorder.tensors
    waiting.leave.set()
    thread.join()
    following.detach()
    store.flush()
    records = json.loads("{" + ",".join(store.lines) + "}")
    assert set(records) == {"Module.inner.Waiting.forward.0", "Module.Around.forward.0"}
    record = records["Module.inner.Waiting.forward.0"]
    assert (record["input_args"][0]["Norm"], "output" in record) == (math.sqrt(4), False)
    assert store.recorder.tensors == measured
    assert store.problems.all() == ()


def test_a_hook_that_is_called_after_it_was_removed_records_nothing() -> None:
    model = Around(nn.Identity())
    store = Store(Problems(set()), Wanted(), Selection())
    capture = Capture(store)
    capture.attach(model)
    (before,) = model.inner._forward_pre_hooks.values()
    (after,) = model.inner._forward_hooks.values()
    capture.detach()
    before(model.inner, (ones(1),), {})
    after(model.inner, (ones(1),), {}, ones(1))
    store.flush()
    assert (store.lines, store.parents(), store.recorder.tensors) == ([], {}, 0)


@pytest.mark.parametrize("is_recording", [True, False])
def test_a_hook_that_is_half_registered_or_half_removed_does_not_disturb_the_forward(is_recording: bool) -> None:
    model = Around(nn.Identity())
    store = Store(Problems(set()), Wanted(), Selection())
    capture = Capture(store)
    capture.attach(model)
    inner = model.inner
    kept = {name: dict(getattr(inner, name)) for name in ("_forward_pre_hooks", "_forward_hooks")}
    if not is_recording:
        capture.detach()
    for name, its_hooks in kept.items():
        getattr(inner, name).update(its_hooks)
    inner._forward_pre_hooks_with_kwargs.clear()
    inner._forward_hooks_with_kwargs.clear()
    assert torch.equal(model(ones(2)), ones(2))
    root = {"Module.Around.forward.0": None} if is_recording else {}
    assert (store.parents(), store.problems.all()) == (root, ())


def trained(steps: int, width: int, elsewhere: bool) -> Iterator[Any]:
    """The model first, then the loss of each step; backwards run on this thread or each on one of its own."""
    torch.manual_seed(width)
    model = Mlp(width)
    yield model
    for step in range(steps):
        loss = model((step + 1.0) * torch.linspace(-1, 1, 3 * width).view(3, width)).square().sum()
        if elsewhere:
            thread = threading.Thread(target=loss.backward)
            thread.start()
            thread.join()
        else:
            loss.backward()
        yield loss


@pytest.mark.parametrize("elsewhere", [False, True])
def test_two_threads_that_train_two_models_with_two_debuggers_mix_and_lose_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, elsewhere: bool
) -> None:
    monkeypatch.setenv("RANK", "0")
    steps, widths = 12, (3, 5)
    runs = [trained(steps, width, elsewhere) for width in widths]
    models = [next(run) for run in runs]
    start = threading.Barrier(2)

    def record(number: int, where: str) -> None:
        debugger = PrecisionDebugger(dump_path=str(tmp_path / where / str(number)), step=[])
        debugger.start(models[number])
        if where == "together":
            start.wait(30)
        for _ in runs[number]:
            pass
        debugger.stop()

    threads = [threading.Thread(target=record, args=(number, "together")) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, width in enumerate(widths):
        runs[number] = trained(steps, width, elsewhere)
        models[number] = next(runs[number])
        record(number, "alone")
        together, alone = (read_dump(tmp_path / where / f"{number}/step0/rank0") for where in ("together", "alone"))
        assert together.meta["problems"] == []
        assert together.data.keys() == alone.data.keys()
        assert together.data == alone.data
        assert (together.construct, together.micro_batches) == (alone.construct, alone.micro_batches)
        assert together.meta["micro_batches"] == steps
        assert len(together.data) == steps * (5 + 5 + 3)


def test_one_model_on_two_threads_has_parents_and_micro_batches_of_its_own_thread(
    debugger: PrecisionDebugger, tmp_path: Path
) -> None:
    model, steps = Mlp(), 20
    start = threading.Barrier(2)

    def train() -> None:
        start.wait(30)
        for _ in range(steps):
            model(ones(2, 4).requires_grad_()).sum().backward()

    debugger.start(model)
    threads = [threading.Thread(target=train) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    debugger.stop()
    dump = read_dump(tmp_path / "dump/step0/rank0")
    assert dump.meta["problems"] == []
    assert dump.meta["micro_batches"] == 2 * steps
    for entry, parent in dump.construct.items():
        if parent is not None:
            assert dump.micro_batches[entry] == dump.micro_batches[parent]
    assert len({entry for entry in dump.construct if dump.construct[entry] is None}) == 2 * 2 * steps
    assert len(dump.construct) == 2 * steps * (5 + 5)
