"""Which streams are waited for before numbers are read: a device module is stood in for, as it is only asked."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from probe_patch.runtime.stats.streams import is_captured, streams_of


@dataclass(frozen=True)
class Stream:
    name: str
    waited: list[str] = field(compare=False)

    def synchronize(self) -> None:
        self.waited.append(self.name)


class Device:
    """``torch.cuda``, as far as it is asked."""

    def __init__(self) -> None:
        self.waited: list[str] = []
        self.now = "default"

    def current_stream(self, device: torch.device) -> Stream:
        return Stream(self.now, self.waited)

    def synchronize(self, device: torch.device) -> None:
        self.waited.append(f"all of {device}")


def test_only_the_streams_that_something_was_queued_on_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device()
    monkeypatch.setattr(torch, "get_device_module", lambda _: device)
    found = streams_of(torch.device("xpu", 0))
    device.now = "of a communication"
    device.now = "default"
    found.note()
    found.note()
    device.now = "side"
    found.note()
    device.now = "of another communication"
    found.wait()
    assert device.waited == ["default", "side"]


def test_streams_of_cuda_are_told_apart_by_their_handles(monkeypatch: pytest.MonkeyPatch) -> None:
    device, asked = Device(), list[int]()

    def raw(index: int) -> int:
        asked.append(index)
        return {"default": 0, "side": 7}[device.now]

    monkeypatch.setattr(torch, "get_device_module", lambda _: device)
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", raw, raising=False)
    found = streams_of(torch.device("cuda", 3))
    found.note()
    device.now = "side"
    found.note()
    found.note()
    found.wait()
    assert device.waited == ["default", "side"]
    assert asked == [3, 3, 3]


def test_a_device_that_does_not_tell_its_streams_is_waited_for_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[torch.device] = []
    monkeypatch.setattr(torch, "get_device_module", lambda _: SimpleNamespace(synchronize=waited.append))
    found = streams_of(torch.device("xpu", 1))
    found.note()
    found.wait()
    assert waited == [torch.device("xpu", 1)]


@pytest.mark.parametrize("name", ["cuda", "npu"])
@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("captured", [False, True])
def test_a_graph_that_is_captured_is_noticed(
    monkeypatch: pytest.MonkeyPatch, name: str, begun: bool, captured: bool
) -> None:
    module: Any = SimpleNamespace(is_initialized=lambda: begun, is_current_stream_capturing=lambda: captured)
    monkeypatch.setattr(torch, name, module, raising=False)
    assert is_captured() == (begun and captured)
