"""Which statistics a tensor can have, decided from what the host already knows about it."""

import sys
from enum import Enum
from typing import Final

import torch
from torch import Tensor

_SMALL_FLOATS: Final = frozenset(
    getattr(torch, name)
    for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")
    if hasattr(torch, name)
)
_FLOATS: Final = frozenset({torch.float64, torch.float32, torch.float16, torch.bfloat16}) | _SMALL_FLOATS
_INTEGERS: Final = frozenset({torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8})
_UNSIGNED: Final = frozenset({torch.uint16, torch.uint32})

_CAPTURED: Final = frozenset({"cuda", "npu"})


class Kind(Enum):
    """How a tensor's numbers are reduced and stored."""

    FLOAT = "float"
    COMPLEX = "complex"
    INTEGER = "integer"
    UNSIGNED = "unsigned"
    UNSIGNED64 = "unsigned64"
    BOOL = "bool"


_KINDS: Final[dict[torch.dtype, Kind]] = {
    **dict.fromkeys(_FLOATS, Kind.FLOAT),
    **dict.fromkeys(_INTEGERS, Kind.INTEGER),
    **dict.fromkeys(_UNSIGNED, Kind.UNSIGNED),
    **dict.fromkeys((torch.complex32, torch.complex64, torch.complex128), Kind.COMPLEX),
    torch.uint64: Kind.UNSIGNED64,
    torch.bool: Kind.BOOL,
}

# torch_npu's numbers for undefined, NCHW, NHWC, ND and NCDHW. Any other is a private layout, not to be reduced.
_NPU_OPEN_FORMATS: Final = frozenset({-1, 0, 1, 2, 30})
_NPU_PRIVATE_FORMATS: Final = {3: "NC1HWC0", 4: "FRACTAL_Z", 29: "FRACTAL_NZ", 32: "NDC1HWC0", 33: "FRACTAL_Z_3D"}


def kind_of(values: Tensor) -> Kind | None:
    """The kind of a plain tensor, or None when it has no statistics: empty, not readable, or of a packed dtype."""
    return _KINDS.get(values.dtype) if values.numel() and is_readable(values) else None


def kind_of_dtype(dtype: torch.dtype) -> Kind | None:
    """The kind of the tensors of a dtype, where they have statistics."""
    return _KINDS.get(dtype)


def is_readable(values: Tensor) -> bool:
    """Whether the bytes of a plain tensor can be read now: not of a meta or sparse one, nor of private formats.

    Nor of one whose storage was freed or cut, as FSDP does with parameters that are gathered again later: reading it
    would end the process.
    """
    if values.layout is not torch.strided or values.is_meta:
        return False
    if values.untyped_storage().nbytes() < _end_of(values):
        return False
    if values.is_cpu:
        return True
    if values.is_cuda and torch.cuda.is_current_stream_capturing():
        return False
    return private_format(values) is None


def _end_of(values: Tensor) -> int:
    """How many bytes of its storage must be there."""
    if values.is_contiguous():
        count = values.numel()
    else:
        count = 1 + sum((length - 1) * step for length, step in zip(values.shape, values.stride(), strict=True))
    return (int(values.storage_offset()) + count) * values.element_size() if values.numel() else 0


def private_format(values: Tensor) -> str | None:
    """The name of the private layout that an NPU keeps a plain tensor in; None of any other tensor.

    Such a tensor must not be read, nor a part of it: its bytes are not in the order of its shape and strides.
    """
    if values.is_cpu or values.is_cuda or values.device.type != "npu":
        return None
    torch_npu = sys.modules.get("torch_npu")
    if torch_npu is None:
        return None
    number = torch_npu.get_npu_format(values)
    return None if number in _NPU_OPEN_FORMATS else _NPU_PRIVATE_FORMATS.get(number, f"number {number}")
