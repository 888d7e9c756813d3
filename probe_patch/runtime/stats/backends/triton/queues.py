"""Where a device's work is queued now."""

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

import torch


class Queue(Protocol):
    """Of one device."""

    def selected(self) -> AbstractContextManager[object]:
        """A block in which this is the device that kernels are launched on."""
        ...

    def current(self) -> int:
        """The number of the current stream."""
        ...

    def is_captured(self) -> bool:
        """Whether what is queued is recorded into a graph instead of run."""
        ...


class CudaQueue:
    """Of a CUDA device."""

    def __init__(self, device: torch.device) -> None:
        self._index = torch.cuda.current_device() if device.index is None else device.index
        self._nothing_to_do = nullcontext()

    def selected(self) -> AbstractContextManager[object]:
        """See ``Queue``."""
        if torch.cuda.current_device() == self._index:
            return self._nothing_to_do
        return torch.cuda.device(self._index)

    def current(self) -> int:
        """See ``Queue``."""
        return int(torch.cuda.current_stream(self._index).cuda_stream)

    def is_captured(self) -> bool:
        """See ``Queue``."""
        return torch.cuda.is_current_stream_capturing()


class HostQueue:
    """Of Triton's interpreter, which runs kernels on the host's tensors at once."""

    def selected(self) -> AbstractContextManager[object]:
        """See ``Queue``."""
        return nullcontext()

    def current(self) -> int:
        """See ``Queue``."""
        return 0

    def is_captured(self) -> bool:
        """See ``Queue``."""
        return False
