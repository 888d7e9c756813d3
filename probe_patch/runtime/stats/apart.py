"""Our own tensor operations kept apart from the run's: no user modes, no subclass code."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch
from torch.utils._python_dispatch import _disable_current_modes


@contextmanager
def apart_from_the_run() -> Iterator[None]:
    """Run the block outside the modes of the code around it.

    Selective checkpointing, for one, counts every operation it sees in a dispatch mode; ours must not be among them.
    The numbers' buffers must not become inference tensors either, because they outlive an inference block. Autograd
    needs no switch: what is measured is detached.
    """
    modes = _disable_current_modes() if torch._C._len_torch_dispatch_stack() else nullcontext()
    with torch._C.DisableTorchFunction(), torch.inference_mode(False), modes:
        yield
