"""Runs that turn Python's garbage collector off: what was recorded goes when it is written, without it."""

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from probe_patch.runtime.debugger import PrecisionDebugger
from tests.runtime.configs import debugger_with
from tests.runtime.conftest import Configured
from tests.runtime.toys import Mlp, ones


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Interrupted(nn.Module):
    """Raises what torch calls no hook for."""

    def forward(self, x: Tensor) -> Tensor:
        raise KeyboardInterrupt


class Around(nn.Module):
    """Goes on without the module inside."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Interrupted()

    def forward(self, x: Tensor) -> Tensor:
        try:
            return self.inner(x * 2)  # type: ignore[no-any-return]
        except KeyboardInterrupt:
            return x


def step(model: nn.Module) -> None:
    model(ones(2, 4).requires_grad_()).sum().backward()


def of_checkpoints(model: nn.Module) -> None:
    checkpoint(model, ones(2, 4).requires_grad_(), use_reentrant=True).sum().backward()


def on_another_thread(model: nn.Module) -> None:
    thread = threading.Thread(target=step, args=(model,))
    thread.start()
    thread.join()


def in_a_pass_that_fails(model: nn.Module) -> None:
    def fail(_: Tensor) -> None:
        raise ValueError("planned")

    x = ones(2, 4).requires_grad_()
    x.register_hook(fail)  # type: ignore[no-untyped-call]
    with pytest.raises(ValueError, match="planned"):
        model(x).sum().backward()


def parts_of(debugger: PrecisionDebugger) -> list[weakref.ref[Any]]:
    assert debugger.service._recording is not None
    capture: Any = debugger.service._recording[0]
    return [weakref.ref(capture), weakref.ref(capture._session)]


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
@pytest.mark.parametrize("run", [step, of_checkpoints, on_another_thread, in_a_pass_that_fails])
def test_nothing_of_a_recording_outlives_its_step(
    configured: Configured, level: str, run: Callable[[nn.Module], None]
) -> None:
    debugger, model = configured(level, "all"), Mlp()
    for _ in range(2):
        debugger.start(model)
        run(model)
        parts = parts_of(debugger)
        debugger.stop()
        debugger.step()
        assert [part() for part in parts] == [None] * len(parts)


@pytest.mark.parametrize("level", ["L0", "mix"])
@pytest.mark.parametrize("data_mode", ["all", "backward"])
def test_a_call_that_never_ended_holds_no_activations(tmp_path: Path, level: str, data_mode: str) -> None:
    debugger = debugger_with(tmp_path, level=level, statistics={"data_mode": [data_mode]})
    model, x = Around(), ones(2, 4).requires_grad_()
    debugger.start(model)
    model(x)
    gone = weakref.ref(x)
    del x
    debugger.stop()
    debugger.step()
    assert gone() is None
