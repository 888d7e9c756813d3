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

# torch_npu's numbers for undefined, NCHW, NHWC, ND and NCDHW. Any other is a private layout, not to be reduced.
_NPU_OPEN_FORMATS: Final = frozenset({-1, 0, 1, 2, 30})
_NPU_PRIVATE_FORMATS: Final = {3: "NC1HWC0", 4: "FRACTAL_Z", 29: "FRACTAL_NZ", 32: "NDC1HWC0", 33: "FRACTAL_Z_3D"}


class Kind(Enum):
    """How a tensor's numbers are reduced and stored."""

    FLOAT = "float"
    COMPLEX = "complex"
    INTEGER = "integer"
    UNSIGNED = "unsigned"
    UNSIGNED64 = "unsigned64"
    BOOL = "bool"


def kind_of(values: Tensor) -> Kind | None:
    """The kind of a plain tensor, or None when it has no statistics: empty, not readable, or of a packed dtype."""
    return kind_of_dtype(values.dtype) if is_readable(values) and values.numel() else None


def is_readable(values: Tensor) -> bool:
    """Whether the bytes of a plain tensor can be read now: not of a meta or sparse one, nor of private formats.

    Nor of one whose storage was freed, as FSDP does with parameters that are gathered again later: reading it would
    end the process.
    """
    device = values.device.type
    if values.layout is not torch.strided or device == "meta":
        return False
    if not values.untyped_storage().nbytes():
        return not values.numel()
    if device in _CAPTURED and _is_captured(device):
        return False
    return device != "npu" or private_format(values) is None


def kind_of_dtype(dtype: torch.dtype) -> Kind | None:
    """The kind of the tensors of a dtype, where they have statistics."""
    if dtype in _FLOATS:
        return Kind.FLOAT
    if dtype in _INTEGERS:
        return Kind.INTEGER
    if dtype is torch.bool:
        return Kind.BOOL
    if dtype.is_complex:
        return Kind.COMPLEX
    if dtype in _UNSIGNED:
        return Kind.UNSIGNED
    return Kind.UNSIGNED64 if dtype is torch.uint64 else None


def _is_captured(device: str) -> bool:
    """Whether what runs now on a device of this type is recorded into a graph."""
    is_capturing = getattr(getattr(torch, device), "is_current_stream_capturing", None)
    return is_capturing is not None and bool(is_capturing())


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
