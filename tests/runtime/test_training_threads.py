"""Models that train on several threads, forwards and backwards."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import pytest
import torch

from probe_patch.runtime.debugger import PrecisionDebugger
from tests.runtime.dumps import read_dump
from tests.runtime.toys import Mlp, ones

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from torch import Tensor

    from tests.runtime.conftest import Configured


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


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
def test_what_a_backward_on_another_thread_may_be_calling_is_left_alone(configured: Configured, level: str) -> None:
    model = Mlp()
    is_inside, may_go_on = threading.Event(), threading.Event()

    def wait(_: Tensor) -> None:
        is_inside.set()
        assert may_go_on.wait(60)

    x = ones(2, 4).requires_grad_()
    x.register_hook(wait)  # type: ignore[no-untyped-call]
    debugger = configured(level, "all")
    debugger.start(model)
    output = model(x).sum()
    thread = threading.Thread(target=output.backward)
    thread.start()
    assert is_inside.wait(60)
    debugger.stop()
    # Empty: without one, torch would free what the other thread has just been given.
    expected: object = None if level == "L1" else OrderedDict()
    assert [parameter._backward_hooks for parameter in model.parameters()] == [expected] * 6
    may_go_on.set()
    thread.join()
    other = Mlp()
    debugger.start(other)
    other(x.detach()).sum().backward()
    debugger.stop()
    assert [parameter._backward_hooks for parameter in other.parameters()] == [None] * 6
