"""Our own tensor operations kept apart from the run's: no user modes, no subclass code."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes


def apart_from_the_run() -> AbstractContextManager[None]:
    """Run the block outside the modes of the code around it.

    Selective checkpointing, for one, counts every operation it sees in a dispatch mode; ours must not be among them.
    The numbers' buffers must not become inference tensors either, because they outlive an inference block. Autograd
    needs no switch: what is measured is detached.
    """
    return _Apart()


class _Apart(AbstractContextManager[None]):
    """Entered by every hook, so written out: what is off already costs nothing."""

    __slots__ = ("_functions", "_others")

    def __enter__(self) -> None:
        self._functions = torch._C.DisableTorchFunction()
        self._functions.__enter__()
        self._others: ExitStack | None = None
        if torch.is_inference_mode_enabled() or torch._C._len_torch_dispatch_stack():
            self._others = ExitStack()
            self._others.enter_context(torch.inference_mode(False))
            self._others.enter_context(_disable_current_modes())

    def __exit__(self, *raised: Any) -> None:
        try:
            if self._others is not None:
                self._others.close()
        finally:
            self._functions.__exit__(*raised)
