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
from tests.runtime.toys import Around, ones


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
