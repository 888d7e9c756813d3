"""Forwards on other threads while recordings begin and end."""

import contextlib
import gc
import math
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from probe_patch.runtime.capture.capture import Capture
from probe_patch.runtime.capture.selection import Selection
from probe_patch.runtime.capture.wanted import Wanted
from probe_patch.runtime.debugger import PrecisionDebugger
from probe_patch.runtime.problems import Problems
from probe_patch.runtime.stats.kinds import Kind
from probe_patch.runtime.stats.table import StatisticsTable
from probe_patch.runtime.store import Store
from tests.interpreted import Replace
from tests.runtime.dumps import entries_of, read_dump, texts_of
from tests.runtime.functions.recording import Recorded, Recording, recorded
from tests.runtime.toys import Around, ones


def tensors_of(record: Any) -> Iterator[dict[str, Any]]:
    if isinstance(record, dict) and record.get("type") == "torch.Tensor":
        yield record
    elif isinstance(record, dict | list):
        for part in record.values() if isinstance(record, dict) else record:
            yield from tensors_of(part)


def test_every_number_is_right_however_forwards_and_stops_meet(
    debugger: PrecisionDebugger, tmp_path: Path, replace: Replace
) -> None:
    def slowly(table: StatisticsTable, values: Tensor, kind: Kind) -> Any:
        reserved = reserve(table, values, kind)
        time.sleep(0.0002)
        return reserved

    # A stop is made likely while a row is reserved and not yet written.
    reserve = StatisticsTable.add
    replace(StatisticsTable, "add", slowly)
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
    records = entries_of(store.lines)
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
    after(model.inner, (ones(1),), ones(1))
    store.flush()
    assert (texts_of(store.lines), store.parents(), store.recorder.tensors) == ([], {}, 0)


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


class Calculates(nn.Module):
    """Calls functions; raises if it is asked to, in the middle."""

    def forward(self, x: torch.Tensor, fails: bool = False) -> Any:
        x = torch.exp(x)
        if fails:
            raise ValueError("planned")
        return x.sin() + 1


CALCULATED = ["Torch.exp", "Tensor.sin", "Tensor.__add__"]


def on_another_thread(work: Callable[[], Any]) -> None:
    failures: list[BaseException] = []

    def run() -> None:
        try:
            work()
            assert torch._C._len_torch_function_stack() == 0
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert failures == []


def functions_of(dump: Recorded) -> list[str]:
    return [name for name in dump.names() if not name.startswith("Module")]


def test_functions_are_recorded_on_every_thread_that_modules_run_on() -> None:
    model = Around(nn.Sequential(Calculates()))

    x = ones(2)

    def work() -> None:
        on_another_thread(lambda: model(x))
        model(x)

    dump = recorded(work, model=model)
    assert functions_of(dump) == CALCULATED * 2
    for call in (0, 1):
        assert dump.parents[f"Torch.exp.{call}.forward"] == f"Module.inner.0.Calculates.forward.{call}"
    assert dump.problems == ()


def test_a_sub_module_that_is_called_by_itself_leaves_no_mode_on_its_thread() -> None:
    model = Around(Calculates())
    # on_another_thread looks at the thread's modes.
    dump = recorded(lambda: on_another_thread(lambda: model.inner(ones(2))), model=model)
    assert functions_of(dump) == CALCULATED


@pytest.mark.parametrize("is_root", [True, False])
def test_at_l1_too(is_root: bool) -> None:
    inner = nn.Sequential(Calculates())
    model = Around(inner)
    recording = Recording(model=model, records_modules=False)
    recording.start()
    on_another_thread(lambda: (torch.tan(ones(1)), (model if is_root else inner)(ones(2)), torch.tan(ones(1))))
    dump = recording.stop()
    assert [name for name in dump.names() if name != "Torch.ones"] == CALCULATED
    assert [hooks for module in model.modules() for hooks in module._forward_hooks.values()] == []


def test_the_mode_is_taken_off_when_a_module_raises() -> None:
    model = Around(Calculates())

    def work() -> None:
        with pytest.raises(ValueError, match="planned"):
            model(ones(2), fails=True)
        torch.tan(ones(1))

    assert functions_of(recorded(lambda: on_another_thread(work), model=model)) == ["Torch.exp"]


def test_numbers_are_unique_and_parents_right_when_threads_run_at_once() -> None:
    model = Around(Calculates())
    threads, calls = 4, 25

    def work() -> None:
        barrier = threading.Barrier(threads)

        def forwards() -> None:
            barrier.wait()
            for _ in range(calls):
                model(ones(2))

        running = [threading.Thread(target=on_another_thread, args=(forwards,)) for _ in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()

    dump = recorded(work, model=model)
    assert {entry for entry in dump.data if entry.startswith("Torch.exp")} == {
        f"Torch.exp.{call}.forward" for call in range(threads * calls)
    }
    children: dict[str | None, list[str]] = {}
    for entry, parent in dump.parents.items():
        children.setdefault(parent, []).append(entry.partition(".forward")[0].rpartition(".")[0])
    inside = [children[entry] for entry in dump.parents if ".Calculates." in entry]
    assert inside == [CALCULATED] * (threads * calls)


def test_a_stop_while_a_module_runs_elsewhere_is_said_and_the_next_pass_clears_it_away() -> None:
    waiting = Waiting()
    model = Around(waiting)
    left: list[int] = []

    def forwards() -> None:
        model(ones(2))
        left.append(torch._C._len_torch_function_stack())
        model(ones(2))
        left.append(torch._C._len_torch_function_stack())

    recording = Recording(model=model)
    recording.start()
    thread = threading.Thread(target=forwards)
    thread.start()
    assert waiting.entered.wait(30)
    dump = recording.stop()
    following = Recording(model=model)
    following.start()
    waiting.leave.set()
    thread.join()
    assert left == [1, 0]
    assert ["while a module was running on another thread" in problem.message for problem in dump.problems] == [True]
    assert following.stop().problems == ()


@pytest.mark.parametrize("records_modules", [True, False])
def test_two_recordings_of_two_models_are_not_mixed(records_modules: bool) -> None:
    models = [Around(nn.Sequential(Calculates())), Around(nn.Sequential(Calculates()))]
    recordings = [Recording(model=model, records_modules=records_modules) for model in models]
    for recording in recordings:
        recording.start()
    models[0](ones(2))
    models[0].inner(ones(2))
    models[1](ones(2))
    torch.tan(ones(1))
    first, second = [recording.stop() for recording in recordings]
    counts = [functions_of(dump).count("Torch.exp") for dump in (first, second)]
    assert counts == [2, 1]
    # Outside both models, a function belongs to whoever records.
    assert [functions_of(dump).count("Torch.tan") for dump in (first, second)] == [1, 1]


class Interrupted(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise KeyboardInterrupt


def test_a_pass_that_was_interrupted_hides_nothing_from_another_recording() -> None:
    model = Around(Interrupted())
    first, second = Recording(model=model), Recording(model=Around(nn.Identity()))
    first.start()
    second.start()
    with pytest.raises(KeyboardInterrupt):
        model(ones(1))
    torch.tan(ones(1))
    assert "Torch.tan" in second.stop().names()
    first.stop()


@pytest.mark.parametrize("records_modules", [True, False])
def test_a_pass_that_was_interrupted_keeps_nothing_alive_after_the_stop(records_modules: bool) -> None:
    recording = Recording(model=(model := Around(Interrupted())), records_modules=records_modules)

    def run() -> weakref.ref[Around]:
        on_the_stack = Around(nn.Identity())
        with contextlib.suppress(KeyboardInterrupt):
            model(ones(1))
        return weakref.ref(on_the_stack)

    recording.start()
    left = run()
    recording.stop()
    gc.collect()
    assert left() is None
