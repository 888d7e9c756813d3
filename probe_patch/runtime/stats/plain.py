"""The plain tensor inside whatever a model passes around, reached without a copy and without communication."""

import sys
from typing import Final

import torch
from torch import Tensor

PLAIN_TYPES: Final = frozenset({Tensor, torch.nn.Parameter, getattr(torch.nn, "Buffer", Tensor)})

_PARAMETER: Final = torch.nn.Parameter

# Asked of every tensor.
_current_level: Final = torch._C._functorch.maybe_current_level
_is_wrapped: Final = torch._C._functorch.is_functorch_wrapped_tensor

# Its name since torch 2.5, and before.
_DTENSOR_MODULES: Final = ("torch.distributed.tensor", "torch.distributed._tensor")


def is_plain(value: object) -> bool:
    """Whether this is a tensor of one of torch's own classes: what it says of itself is not somebody else's code."""
    kind = type(value)
    return kind is Tensor or kind is _PARAMETER or kind in PLAIN_TYPES


def plain_values(tensor: Tensor) -> Tensor | None:
    """The values this process holds: a DTensor's local shard, a nested tensor's packed values, else the tensor itself.

    None when there are none to be had: wrapper subclasses, whose own code would run on every reduction.

    Raises:
        ValueError: a transform of ``torch.func`` is running; or the values are still being communicated; or it is a
            jagged tensor with holes, whose values cannot be told from them without waiting for the device.
    """
    if _current_level() is not None or _is_wrapped(tensor):
        raise ValueError("inside a transform of torch.func (vmap, grad and so on) a tensor has no numbers of its own")
    if not is_plain(tensor):
        return _inside_subclass(tensor)
    if tensor.is_nested:
        # Views of a nested tensor hold all of its buffer; only a contiguous one has no holes.
        return tensor.contiguous().values()
    if tensor._is_zerotensor():
        # Nothing lies in memory of these, which torch makes where no gradient flows; reading it would end the process.
        return torch.zeros((), dtype=tensor.dtype, device=tensor.device).expand(tensor.shape)
    return tensor.dequantize() if tensor.is_quantized else tensor


def is_dtensor(tensor: Tensor) -> bool:
    """Whether this is a distributed tensor; false without importing anything when no one has imported them."""
    return any(
        isinstance(tensor, dtensor)
        for name in _DTENSOR_MODULES
        if (dtensor := getattr(sys.modules.get(name), "DTensor", None)) is not None
    )


def _is_asynchronous(tensor: Tensor) -> bool:
    """Whether this is what a functional collective returns before it is done, or DTensor for it."""
    collectives = sys.modules.get("torch.distributed._functional_collectives")
    asynchronous = getattr(collectives, "AsyncCollectiveTensor", None)
    return asynchronous is not None and isinstance(tensor, asynchronous)


def _inside_subclass(tensor: Tensor) -> Tensor | None:
    if is_dtensor(tensor):
        local: Tensor = tensor._local_tensor  # type: ignore[attr-defined]
        return plain_values(local)
    if _is_asynchronous(tensor):
        # Waiting before the run does could be waiting for a rank that waits for this one.
        if not tensor.completed:  # type: ignore[attr-defined]
            raise ValueError("its values were still being communicated, so it has no numbers")
        return plain_values(tensor.elem)  # type: ignore[attr-defined]
    if tensor.layout is torch.jagged:
        if tensor.lengths() is not None:  # type: ignore[attr-defined]
            raise ValueError("a jagged tensor with holes (lengths) has no numbers; pass on a contiguous one")
        return plain_values(tensor.values())
    if type(tensor).__torch_dispatch__ is not torch._C._disabled_torch_dispatch_impl:
        return None
    return tensor.as_subclass(Tensor).detach()
