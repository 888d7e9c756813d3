"""What a recording must never do to the run around it: wait for good, or speak for another process."""

import logging
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from probe_patch.runtime.capture import session
from probe_patch.runtime.debugger import PrecisionDebugger
from tests.runtime.dumps import only_rank, read_dump
from tests.runtime.toys import ones


class TakesAnything(nn.Module):
    def forward(self, x: Tensor, extra: object = None) -> Tensor:
        return x + 1


class Lazy(Mapping[str, Tensor]):
    """A mapping that fetches its value with another module, on another thread, and waits for it."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.fetched = 0

    def __getitem__(self, key: str) -> Tensor:
        thread = threading.Thread(target=self._fetch)
        thread.start()
        thread.join()
        return ones(1, 1)

    def _fetch(self) -> None:
        self.module(ones(1, 1))
        self.fetched += 1

    def __iter__(self) -> Iterator[str]:
        yield "value"

    def __len__(self) -> int:
        return 1


def test_a_value_that_waits_for_another_thread_is_waited_for_no_longer_than_patience(
    debugger: PrecisionDebugger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "PATIENCE", 0.01)
    model = nn.ModuleList([TakesAnything(), nn.Identity()])
    lazy = Lazy(model[1])
    debugger.start(model)
    assert torch.equal(model[0](ones(1, 1), lazy), ones(1, 1) + 1)
    debugger.stop()
    dump = read_dump(only_rank(tmp_path / "dump" / "step0"))
    assert lazy.fetched == 1
    assert "recording" in {problem["kind"] for problem in dump.meta["problems"]}
    assert "Module.0.TakesAnything.forward.0" in dump.data


def in_a_child(work: object) -> int:
    """The exit code of a forked child that runs ``work``, which must end by itself."""
    pid = os.fork()
    if pid == 0:
        try:
            work()  # type: ignore[operator]
            os._exit(0)
        except BaseException:
            os._exit(1)
    for _ in range(100):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        threading.Event().wait(0.1)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    raise AssertionError("the child hangs")


def test_a_forked_child_is_neither_held_up_nor_recorded(debugger: PrecisionDebugger, tmp_path: Path) -> None:
    model = nn.Sequential(nn.Identity(), nn.Identity())
    debugger.start(model)
    model(ones(1, 1))
    # As if another thread of the parent were just recording: nobody in the child will ever give this lock back.
    recording = debugger.service._recording
    assert recording is not None
    store = recording[0]._session.store
    thread_holds, thread_ends = threading.Event(), threading.Event()

    def hold() -> None:
        with store.lock:
            thread_holds.set()
            thread_ends.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    assert thread_holds.wait(10)

    def child() -> None:
        model(ones(1, 1))
        debugger.stop()
        debugger.step()
        assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())

    code = in_a_child(child)
    thread_ends.set()
    thread.join()
    assert code == 0
    assert not list((tmp_path / "dump" / "step0").rglob("dump.json")), "the child wrote its parent's dump"
    debugger.stop()
    dump = read_dump(only_rank(tmp_path / "dump" / "step0"))
    assert set(dump.data) == {f"Module.{name}.forward.0" for name in ("0.Identity", "1.Identity", "Sequential")}


def test_a_log_handler_that_raises_does_not_reach_the_run(debugger: PrecisionDebugger) -> None:
    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise RuntimeError("log sink down")

    class Bad(Lazy):
        def __getitem__(self, key: str) -> Tensor:
            raise KeyError(key)

    handler = Broken()
    logging.getLogger().addHandler(handler)
    try:
        model = nn.ModuleList([TakesAnything()])
        debugger.start(model)
        assert torch.equal(model[0](ones(1, 1), Bad(nn.Identity())), ones(1, 1) + 1)
        debugger.stop()
    finally:
        logging.getLogger().removeHandler(handler)


@pytest.mark.parametrize("path", [None, 5])
def test_a_dump_path_that_is_none_does_not_reach_the_run(debugger: PrecisionDebugger, path: object) -> None:
    debugger.config.dump_path = path  # type: ignore[assignment]
    debugger.start(nn.Sequential(nn.Identity()))
    debugger.stop()
    debugger.step()
