"""Entries are turned into lines while the recording goes on, so that its memory does not grow with them."""

import signal
import threading
import time
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from probe_patch.runtime import batch, lines, store
from probe_patch.runtime.batch import Batch
from probe_patch.runtime.capture import session
from probe_patch.runtime.debugger import PrecisionDebugger
from probe_patch.runtime.record_text import add_record
from probe_patch.runtime.store import Store
from tests.interpreted import Replace
from tests.runtime.configs import debugger_with
from tests.runtime.dumps import DumpOnDisk, only_rank, read_dump
from tests.runtime.toys import Mlp, ones

BYTES_PER_ENTRY = 300
"""Of the call that an entry is of, mostly. Held until the stop, records and numbers take three times as much."""


class TwoOutputs(nn.Module):
    """Of a second output nothing may come back, or later."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.linear(x)
        return y.sin(), y.cos()


class Checkpointed(nn.Module):
    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        self.inner = Mlp()
        self.reentrant = reentrant

    def forward(self, x: Tensor) -> Any:
        return checkpoint(self.inner, x, use_reentrant=self.reentrant)


class Shares(nn.Module):
    """Inputs whose gradients come in several parts."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Bilinear(4, 4, 4)

    def forward(self, x: Tensor) -> Any:
        return self.inner(x, x) * x + x


def forwards(model: nn.Module) -> None:
    with torch.no_grad():
        for _ in range(5):
            model(ones(2, 4))


def micro_batches(model: nn.Module) -> None:
    for number in range(5):
        output = model((number + ones(2, 4)).requires_grad_())
        (output[0] if isinstance(output, tuple) else output).sum().backward()


def backwards_at_the_end(model: nn.Module) -> None:
    outputs = [model((number + ones(2, 4)).requires_grad_()) for number in range(5)]
    for output in outputs:
        output.sum().backward()


def outputs_one_after_the_other(model: nn.Module) -> None:
    outputs = [model((number + ones(2, 4)).requires_grad_()) for number in range(5)]
    for place in (0, 1):
        for output in outputs:
            output[place].sum().backward(retain_graph=place == 0)


def through_one_graph_again(model: nn.Module) -> None:
    outputs = [model((number + ones(2, 4)).requires_grad_()) for number in range(5)]
    for _ in range(2):
        for output in outputs:
            output.sum().backward(retain_graph=True)


def some_parameters_only(model: nn.Module) -> None:
    for parameter in list(model.parameters())[::2]:
        parameter.requires_grad = False
    micro_batches(model)


def graphs_that_nothing_flows_through(model: nn.Module) -> None:
    for _ in range(5):
        model(ones(2, 4))


WORK: dict[str, tuple[Callable[[], nn.Module], Callable[[nn.Module], None]]] = {
    "forwards": (Mlp, forwards),
    "micro-batches": (Mlp, micro_batches),
    "backwards at the end": (Mlp, backwards_at_the_end),
    "shares": (Shares, micro_batches),
    "an output that is not used": (TwoOutputs, micro_batches),
    "outputs one after the other": (TwoOutputs, outputs_one_after_the_other),
    "one graph again": (Mlp, through_one_graph_again),
    "some parameters": (Mlp, some_parameters_only),
    "no backward": (Mlp, graphs_that_nothing_flows_through),
    "checkpointed": (lambda: Checkpointed(reentrant=False), micro_batches),
    "checkpointed, reentrant": (lambda: Checkpointed(reentrant=True), micro_batches),
}

CONFIGS: dict[str, dict[str, Any]] = {
    "L0": {"level": "L0"},
    "L1": {"level": "L1"},
    "mix": {"level": "mix"},
    "backward": {"level": "mix", "statistics": {"data_mode": ["backward"]}},
    "counts": {"level": "mix", "statistics": {"summary_mode": ["max", "nan_count"]}},
    "md5": {"level": "mix", "statistics": {"summary_mode": "md5"}},
    "xor": {"level": "mix", "statistics": {"summary_mode": "xor"}},
    "scope": {"level": "mix", "statistics": {"list": ["up"]}},
    "files": {"level": "mix", "task": "tensor"},
}


def recorded(
    folder: Path, work: tuple[Callable[[], nn.Module], Callable[[nn.Module], None]], keys: dict[str, Any]
) -> DumpOnDisk:
    torch.manual_seed(0)
    make, run = work
    model, debugger = make(), debugger_with(folder, **keys)
    debugger.start(model)
    run(model)
    debugger.stop()
    debugger.step()
    return read_dump(only_rank(folder / "dump/step0"))


def additions_in(replace: Replace) -> list[Batch]:
    """A list that grows with every time that entries are turned into lines."""
    additions: list[Batch] = []
    write = Batch.write

    def counted(some: Batch, *rest: Any) -> None:
        additions.append(some)
        write(some, *rest)

    replace(Batch, "write", counted)
    return additions


def assert_same(dump: DumpOnDisk, other: DumpOnDisk) -> None:
    assert dump.data == other.data
    assert dump.construct == other.construct
    assert [entries for entries, _ in dump.stack.values()] == [entries for entries, _ in other.stack.values()]
    for key in ("entries", "tensors", "problems", "micro_batches"):
        assert dump.meta[key] == other.meta[key]


CASES = [(work, config) for work in WORK for config in ("L0", "mix")] + [
    (work, config) for work in ("micro-batches", "shares") for config in CONFIGS if config not in ("L0", "mix")
]


@pytest.mark.parametrize(("work", "config"), CASES)
def test_the_dump_is_the_same_however_often_entries_are_turned_into_lines(
    tmp_path: Path, replace: Replace, work: str, config: str
) -> None:
    keys = CONFIGS[config]
    whole = recorded(tmp_path / "whole", WORK[work], keys)
    replace(store, "AT_ONCE", 10)
    replace(lines, "MOST_IN_MEMORY", 500)
    additions = additions_in(replace)
    assert_same(recorded(tmp_path / "often", WORK[work], keys), whole)
    assert len(additions) > 3 or len(whole.data) < 10


@pytest.mark.parametrize(
    "keys",
    [
        {"level": "mix", "task": "nan_check"},
        {"level": "mix", "task": "tensor", "async_dump": True},
    ],
    ids=["nan_check", "async_dump"],
)
def test_what_is_looked_at_together_is_left_together(tmp_path: Path, replace: Replace, keys: dict[str, Any]) -> None:
    def run(model: nn.Module) -> None:
        with torch.no_grad():
            next(model.parameters())[0, 0] = float("nan")
        micro_batches(model)

    whole = recorded(tmp_path / "whole", (Mlp, run), keys)
    replace(store, "AT_ONCE", 10)
    additions = additions_in(replace)
    often = recorded(tmp_path / "often", (Mlp, run), keys)
    assert_same(often, whole)
    assert often.meta.get("nan_check") == whole.meta.get("nan_check")
    assert len(additions) == 1


def test_the_calls_alone_are_counted_too(tmp_path: Path, replace: Replace) -> None:
    keys = {"level": "mix", "task": "structure"}
    whole = recorded(tmp_path / "whole", WORK["micro-batches"], keys)
    replace(store, "AT_ONCE", 10)
    assert_same(recorded(tmp_path / "often", WORK["micro-batches"], keys), whole)


@pytest.mark.parametrize("with_gradients", [False, True], ids=["forwards", "training"])
def test_the_memory_of_an_entry_is_that_of_its_call(tmp_path: Path, replace: Replace, with_gradients: bool) -> None:
    replace(store, "AT_ONCE", 2_000)
    replace(lines, "MOST_IN_MEMORY", 1 << 18)
    model, x = nn.Sequential(nn.Tanh()), ones(4)
    x.requires_grad = with_gradients
    debugger = debugger_with(tmp_path)

    def peak_over(passes: int) -> int:
        tracemalloc.reset_peak()
        for _ in range(passes):
            output = model(x)
            if with_gradients:
                output.sum().backward()
        return tracemalloc.get_traced_memory()[1]

    debugger.start(model)
    tracemalloc.start()
    try:
        passes = 2_000
        first, second = peak_over(passes), peak_over(passes)
    finally:
        tracemalloc.stop()
        debugger.stop()
    assert (second - first) / (passes * (4 if with_gradients else 2)) < BYTES_PER_ENTRY


def test_nothing_is_read_while_a_graph_is_captured(tmp_path: Path, replace: Replace) -> None:
    whole = recorded(tmp_path / "whole", WORK["forwards"], {"level": "L0"})
    replace(store, "AT_ONCE", 10)
    replace(store, "is_captured", lambda: True)
    additions = additions_in(replace)
    assert_same(recorded(tmp_path / "captured", WORK["forwards"], {"level": "L0"}), whole)
    assert len(additions) == 1


def test_another_thread_waits_for_as_long_as_it_takes(
    debugger: PrecisionDebugger, tmp_path: Path, replace: Replace
) -> None:
    replace(store, "AT_ONCE", 20)
    # Longer than any hook takes, also on a busy machine.
    replace(session, "PATIENCE", 0.3)
    is_at_work, write = threading.Event(), Batch.write

    def slow(some: Batch, *rest: Any) -> None:
        if not is_at_work.is_set():
            is_at_work.set()
            time.sleep(1)
        write(some, *rest)

    replace(Batch, "write", slow)
    model = Mlp()
    debugger.start(model)
    other = threading.Thread(target=forwards, args=(model,))
    other.start()
    assert is_at_work.wait(30)
    forwards(model)
    other.join()
    debugger.stop()
    dump = read_dump(tmp_path / "dump/step0/rank0")
    assert len(dump.data) == 2 * 5 * 5
    assert dump.meta["problems"] == []


def test_hooks_of_graphs_that_are_gone_are_forgotten(tmp_path: Path, replace: Replace) -> None:
    replace(store, "AT_ONCE", 10)
    debugger, model = debugger_with(tmp_path, level="mix"), Mlp()
    debugger.start(model)
    for _ in range(20):
        model(ones(2, 4))
    assert debugger.service._recording is not None
    capture: Any = debugger.service._recording[0]
    assert len(capture._session.gradients._hooked) < 100
    debugger.stop()


def test_a_call_keeps_nothing_that_it_needs_no_longer(tmp_path: Path) -> None:
    debugger, model = debugger_with(tmp_path, level="mix"), Mlp()
    debugger.start(model)
    assert debugger.service._recording is not None
    capture: Any = debugger.service._recording[0]
    calls: list[Any] = capture._session.store._begun
    micro_batches(model)
    debugger.stop()
    assert calls
    assert {(call.flow, call.handled, call.frame, len(call.give_record())) for call in calls} == {(None, None, 0, 0)}


def test_a_failure_while_entries_are_turned_into_lines_does_not_reach_the_run(tmp_path: Path, replace: Replace) -> None:
    def broken(*_: object) -> Any:
        raise RuntimeError("broken on purpose")

    replace(store, "AT_ONCE", 10)
    replace(Store, "_written", broken)
    dump = recorded(tmp_path, WORK["forwards"], {"level": "L0"})
    (problem,) = dump.meta["problems"]
    assert (problem["kind"], problem["message"]) == ("encoding the dump", "RuntimeError: broken on purpose")
    # What was incomplete then has lost what was recorded so far, and what is recorded later is right.
    assert any(entry["input_args"] is None for entry in dump.data.values())
    (last,) = [entry for name, entry in dump.data.items() if name == "Module.norm.LayerNorm.forward.4"]
    assert last["output"][0]["Norm"] == pytest.approx(8**0.5, rel=1e-3)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Also where the tests run in the background of a shell, which has them ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interruption_while_entries_are_turned_into_lines_loses_one_at_most(
    debugger: PrecisionDebugger, tmp_path: Path, replace: Replace
) -> None:
    replace(store, "AT_ONCE", 30)
    written = 0

    def interrupted(*args: Any) -> None:
        nonlocal written
        written += 1
        if written == 3:
            signal.raise_signal(signal.SIGINT)
        add_record(*args)

    replace(batch, "add_record", interrupted)
    model = Mlp()
    debugger.start(model)
    with pytest.raises(KeyboardInterrupt):
        forwards(model)
    debugger.stop()
    dump = read_dump(tmp_path / "dump/step0/rank0")
    assert len(dump.data) == dump.meta["entries"] - 1 > 5


def test_no_activation_is_kept(tmp_path: Path, replace: Replace) -> None:
    replace(store, "AT_ONCE", 10)
    debugger, model = debugger_with(tmp_path, level="mix"), Mlp()
    debugger.start(model)
    output = model(ones(2, 4))
    output.sum().backward()
    kept = weakref.ref(output)
    del output
    assert kept() is None
    debugger.stop()
