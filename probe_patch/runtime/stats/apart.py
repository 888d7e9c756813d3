"""Our own tensor operations kept apart from the run's: no user modes, no subclass code, no graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import torch
from torch.utils._python_dispatch import _disable_current_modes

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from probe_patch.runtime.stats.thread_state import ThreadState

# Asked for every hook.
_DisableTorchFunction: Final = torch._C.DisableTorchFunction
_is_grad_enabled: Final = torch.is_grad_enabled
_is_inference_mode_enabled: Final = torch.is_inference_mode_enabled
_set_grad_enabled: Final = torch._C._set_grad_enabled
_len_torch_dispatch_stack: Final = torch._C._len_torch_dispatch_stack
_GRADIENTS: Final = 4


def _thread_state() -> ThreadState | None:
    """Does in one step what nearly always has to be done; None where it is not there."""
    try:
        from probe_patch.runtime.stats.thread_state import ThreadState

        return ThreadState()
    except (ImportError, AttributeError, OSError, RuntimeError):
        return None


_quick: Final = _thread_state()


class ApartFromTheRun:
    """Run a block outside the modes of the code around it.

    Selective checkpointing, for one, counts every operation it sees in a dispatch mode; ours must not be among them.
    The numbers' buffers must not become inference tensors either, because they outlive an inference block.

    It is entered for every hook that records, hence by hand what torch's own context managers take microseconds for.

    Attributes:
        had_gradients: whether gradients were enabled before.
        was_in_inference_mode: whether inference mode was on before.
    """

    __slots__ = ("_earlier", "_functions", "_inference", "_modes", "had_gradients", "was_in_inference_mode")

    def __enter__(self) -> None:
        self.begin()

    def __exit__(self, *raised: object) -> None:
        self.end()

    def __init__(self) -> None:
        self._functions: Any = _DisableTorchFunction()

    def begin(self) -> None:
        """``with`` by hand, for one who ends it for sure; then it can begin again."""
        self._earlier = -1 if _quick is None else _quick.leave()
        if self._earlier >= 0:
            self.had_gradients = self._earlier & _GRADIENTS != 0
            self.was_in_inference_mode = False
            return
        self._functions.__enter__()
        self._inference: Any = None
        self.had_gradients = _is_grad_enabled()
        self.was_in_inference_mode = _is_inference_mode_enabled()
        if self.was_in_inference_mode:
            self._inference = torch._C._InferenceMode(False)
            self._inference.__enter__()
        # Leaving inference mode turns gradients on.
        if self.had_gradients or self.was_in_inference_mode:
            _set_grad_enabled(False)
        self._modes: AbstractContextManager[object] | None = None
        if _len_torch_dispatch_stack():
            self._modes = _disable_current_modes()
            self._modes.__enter__()

    def end(self) -> None:
        """What ``begin`` changed is as it was."""
        if _quick is not None and self._earlier >= 0:
            _quick.put_back(self._earlier)
            return
        if self._modes is not None:
            self._modes.__exit__(None, None, None)
        if self._inference is not None:
            # It puts back what gradients were, too.
            self._inference.__exit__(None, None, None)
        elif self.had_gradients:
            _set_grad_enabled(True)
        self._functions.__exit__(None, None, None)
