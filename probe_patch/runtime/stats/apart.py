"""Our own tensor operations kept apart from the run's: no user modes, no subclass code."""

from contextlib import ExitStack

import torch
from torch.utils._python_dispatch import _disable_current_modes


class Apart:
    """One block outside the modes of the code around it.

    Selective checkpointing, for one, counts every operation it sees in a dispatch mode; ours must not be among them.
    The numbers' buffers must not become inference tensors either, because they outlive an inference block. Autograd
    needs no switch: what is measured is detached.
    """

    __slots__ = ("_functions", "_modes")

    def __enter__(self) -> None:
        # Seldom anything is on, and to switch off what is not costs more than to ask.
        self._modes: ExitStack | None = None
        if torch.is_inference_mode_enabled() or torch._C._len_torch_dispatch_stack():
            self._modes = _others_off()
        self._functions = torch._C.DisableTorchFunction()
        self._functions.__enter__()

    def __exit__(self, *exception: object) -> None:
        self._functions.__exit__(None, None, None)
        if self._modes is not None:
            self._modes.close()


def apart_from_the_run() -> Apart:
    """Run the block apart; see ``Apart``."""
    return Apart()


def _others_off() -> ExitStack:
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode(False))
        if torch._C._len_torch_dispatch_stack():
            stack.enter_context(_disable_current_modes())
        return stack.pop_all()
