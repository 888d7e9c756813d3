"""What a tensor looks like."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probe_patch.runtime.capture.forms import Look
from probe_patch.runtime.capture.placements import placement_of
from probe_patch.runtime.stats.kinds import kind_of_dtype
from probe_patch.runtime.stats.plain import is_dtensor

if TYPE_CHECKING:
    from torch import Tensor


def look_of(tensor: Tensor, values: Tensor | None) -> Look:
    """``values`` are those looked at; None where there are none."""
    shape = _known_lengths(tensor) if values is None else tuple(values.shape)
    kind = None if values is None or 0 in shape else kind_of_dtype(values.dtype)
    placement = placement_of(tensor) if is_dtensor(tensor) else None
    return Look(_type_name(tensor), tensor.dtype, shape, tensor.requires_grad, kind, placement)


def _type_name(tensor: Tensor) -> str:
    if is_dtensor(tensor):
        return "torch.distributed.tensor.DTensor"
    return "torch.nested._internal.nested_tensor.NestedTensor" if tensor.is_nested else "torch.Tensor"


def _known_lengths(tensor: Tensor) -> tuple[int | None, ...]:
    """The shape of a tensor without values: of a nested one, a length may be a symbol."""
    return tuple(length if isinstance(length, int) else None for length in tensor.shape)


def look_of_whole(tensor: Tensor) -> Look:
    """Of a plain, dense tensor that is looked at as it is."""
    shape, dtype = tuple(tensor.shape), tensor.dtype
    return Look("torch.Tensor", dtype, shape, tensor.requires_grad, None if 0 in shape else kind_of_dtype(dtype))
