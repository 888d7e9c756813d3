"""Tensors that a module and the function it is made of are both given: looked at once, where nothing can come between.

A tensor may be overwritten by what does not show: a kernel of the user's own, numpy, ``.data``. Hence a tensor counts
as unchanged only between hooks of ours with nothing but torch's own code between them: while a module of a few
classes of torch's runs, each of which makes a single call of a function that writes into none of its arguments, and
only while no hook, no mode and no override of anybody else's could run there. Beyond that, torch's version of the
tensor must be the same, which it is not after an operation in place.

Outside of such a module everything is looked at anew, parameters too: optimizers with kernels of their own do not
tell that they changed a weight.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Final, TypeAlias

import torch
from torch import nn
from torch.nn import functional
from torch.nn.modules import module as hooked_globally

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType

    from probe_patch.runtime.capture.forms import TensorRecord

Known: TypeAlias = "dict[int, TensorRecord]"
"""The records of tensors, by the state they were in: see ``state_of``."""

SINGLE_CALLS: Final[Mapping[type[nn.Module], str]] = {
    getattr(nn, module): function
    for module, function in (
        ("Embedding", "embedding"),
        ("GELU", "gelu"),
        ("GroupNorm", "group_norm"),
        ("LayerNorm", "layer_norm"),
        ("Linear", "linear"),
        ("RMSNorm", "rms_norm"),
        ("SiLU", "silu"),
        ("Softmax", "softmax"),
    )
    if hasattr(nn, module)
}
"""Modules whose ``forward`` is one call of a function, and the function."""

_TORCH: Final = f"{Path(torch.__file__).parent}{os.sep}"

_DEPTH: Final = 6
"""How many frames of torch's there may be between the function mode and the module's hooks."""

_GLOBAL_HOOKS: Final[tuple[Mapping[int, object], ...]] = (
    hooked_globally._global_forward_pre_hooks,
    hooked_globally._global_forward_hooks,
)


class Unchanged:
    """One call of such a module. Its frame holds what it is given, and what it gives is on its way: none of the
    identities can become another tensor's.

    Args:
        frame: the one in which torch calls our hooks and the module's ``forward``.
    """

    __slots__ = ("_frame", "_known")

    def __init__(self, frame: FrameType) -> None:
        self._frame = frame
        self._known: Known = {}

    def in_hook(self, frame: FrameType | None) -> Known | None:
        """What is known in a hook that this frame calls; None in that of another call."""
        return self._known if frame is self._frame else None

    def in_function(self, frame: FrameType | None) -> Known | None:
        """What is known in a function that was called from this frame, if that is done for the module."""
        for _ in range(_DEPTH):
            if frame is self._frame:
                return self._known
            if frame is None:
                return None
            frame = frame.f_back
        return None


def nothing_comes_between(module: nn.Module) -> bool:
    """Whether from our hook before this module to our hook behind it only torch's code can run, besides our mode's."""
    function = SINGLE_CALLS.get(type(module))
    return (
        function is not None
        and _is_torchs(type(module).forward)
        and "forward" not in module.__dict__
        and _is_torchs(getattr(functional, function, None))
        and _is_torchs(getattr(torch, function, None))
        and len(module._forward_pre_hooks) == 1
        and len(module._forward_hooks) == 1
        and not any(_GLOBAL_HOOKS)
        and torch._C._len_torch_function_stack() <= 1
        and not torch._C._len_torch_dispatch_stack()
        and _no_saved_tensors_hooks()
    )


def _is_torchs(function: object) -> bool:
    """Whether nobody has put something of his own in a function's place; what it says of itself can be copied."""
    if isinstance(function, FunctionType):
        return function.__code__.co_filename.startswith(_TORCH)
    return function is None or isinstance(function, BuiltinFunctionType)


def _no_saved_tensors_hooks() -> bool:
    """Whether no code of others runs while torch saves a tensor for the backward."""
    ask = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)
    return ask is not None and ask(True) is None
