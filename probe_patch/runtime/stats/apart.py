"""Our own tensor operations kept apart from the run's: no user modes, no subclass code, no graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


class ApartFromTheRun:
    """Run a block outside the modes of the code around it.

    Selective checkpointing, for one, counts every operation it sees in a dispatch mode; ours must not be among them.
    The numbers' buffers must not become inference tensors either, because they outlive an inference block.

    It is entered for every hook that records, hence by hand what torch's own context managers take microseconds for.
    """

    __slots__ = ("_functions", "_had_gradients", "_inference", "_modes")

    def __enter__(self) -> None:
        self._functions: Any = torch._C.DisableTorchFunction()
        self._functions.__enter__()
        self._inference: Any = None
        if torch.is_inference_mode_enabled():
            # It turns gradients on.
            self._inference = torch._C._InferenceMode(False)
            self._inference.__enter__()
        self._had_gradients = torch.is_grad_enabled()
        if self._had_gradients:
            torch._C._set_grad_enabled(False)
        self._modes: AbstractContextManager[object] | None = None
        if torch._C._len_torch_dispatch_stack():
            self._modes = _disable_current_modes()
            self._modes.__enter__()

    def __exit__(self, *raised: object) -> None:
        if self._modes is not None:
            self._modes.__exit__(None, None, None)
        if self._had_gradients:
            torch._C._set_grad_enabled(True)
        if self._inference is not None:
            self._inference.__exit__(None, None, None)
        self._functions.__exit__(None, None, None)
