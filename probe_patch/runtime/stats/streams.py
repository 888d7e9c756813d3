"""The streams of a device on which numbers are written, to be waited for before these are read.

Only they, not the whole device: while the run goes on, another stream may hold a communication that other ranks join
only once this one has gone on.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import torch

if TYPE_CHECKING:
    from collections.abc import Callable


class Streams(Protocol):
    """Those of one device."""

    def note(self) -> None:
        """Something is about to be queued on the current stream."""
        ...

    def wait(self) -> None:
        """Until all that was noted is done."""
        ...


class _Host:
    """Of the CPU, where everything is done at once."""

    def note(self) -> None:
        """Nothing is to be waited for."""

    def wait(self) -> None:
        """Nothing is to be waited for."""


class _WholeDevice:
    """Of a device that does not tell its streams."""

    def __init__(self, wait: Callable[[], None]) -> None:
        self.wait = wait

    def note(self) -> None:
        """Everything is waited for."""


class _Noted:
    """Of a device that tells its current stream.

    Args:
        current: gives it.
        number: gives what tells it from others, in less time.
    """

    def __init__(self, current: Callable[[], Any], number: Callable[[], object]) -> None:
        self._current = current
        self._number = number
        self._streams: dict[object, Any] = {}

    def note(self) -> None:
        number = self._number()
        if number not in self._streams:
            self._streams[number] = self._current()

    def wait(self) -> None:
        for stream in self._streams.values():
            stream.synchronize()


def streams_of(device: torch.device) -> Streams:
    """None are noted yet."""
    if device.type == "cpu":
        return _Host()
    module: Any = torch.get_device_module(device)
    if not hasattr(module, "current_stream"):
        return _WholeDevice(partial(module.synchronize, device))
    current = partial(module.current_stream, device)
    if device.type == "cuda" and device.index is not None:
        return _Noted(current, partial(torch._C._cuda_getCurrentRawStream, device.index))
    return _Noted(current, current)


def is_captured() -> bool:
    """Whether what this thread queues is recorded into a graph instead of run: nothing can be waited for then."""
    return any(_is_captured(getattr(torch, name, None)) for name in ("cuda", "npu"))


def _is_captured(module: Any) -> bool:
    if module is None or not hasattr(module, "is_current_stream_capturing") or not module.is_initialized():
        return False
    return bool(module.is_current_stream_capturing())
