"""Functions of torch's libraries that tell of a tensor what its Python methods do, in a hundredth of the time."""

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Final

import torch
from torch import Tensor, nn

_POINTER: Final = ctypes.sizeof(ctypes.c_void_p)

# Of those that are no C functions, as the C++ compilers of Linux and macOS write their arguments' types into them.
_NAMES: Final = (
    "_ZN2at6native6is_negERKNS_6TensorE",
    "_ZN2at6native12is_inferenceERKNS_6TensorE",
    "_ZNK3c1010TensorImpl13requires_gradEv",
    "aoti_torch_get_storage_size",
    "aoti_torch_get_storage_offset",
)


@dataclass(frozen=True)
class TensorCalls:
    """Where they are in this process.

    The first three cannot raise: they read what a tensor holds. The others, torch's interface for C
    (``aoti_torch/c/shim.h``), return whether they failed, and write what they tell.

    Attributes:
        handle: how far behind the address of a tensor's Python object its ``at::Tensor`` lies, which is one pointer.
        is_neg: ``bool (at::Tensor*)``: whether the negative of what lies in memory is meant.
        is_inference: ``bool (at::Tensor*)``: whether it was made in inference mode, and has no version.
        requires_grad: ``bool (c10::TensorImpl*)``, of what the handle points to.
        storage_size: ``int32_t (at::Tensor*, int64_t*)``, in bytes.
        storage_offset: ``int32_t (at::Tensor*, int64_t*)``, in elements.
    """

    handle: int
    is_neg: int
    is_inference: int
    requires_grad: int
    storage_size: int
    storage_offset: int


@cache
def tensor_calls() -> TensorCalls | None:
    """Those of this torch; None where one is missing, or says anything else than Python's methods do."""
    try:
        # What torch._C is linked with is searched too.
        libraries = ctypes.PyDLL(torch._C.__file__)
        found = TensorCalls(
            _handle(),
            *(_address(libraries[name]) for name in _NAMES),
        )
        return found if all(told(found, tensor) == asked(tensor) for tensor in _samples()) else None
    except (AttributeError, OSError, RuntimeError, TypeError, ValueError):
        return None


def _address(function: object) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]


def _samples() -> list[Tensor]:
    whole = torch.ones(4, 3, dtype=torch.complex64, device="cpu")
    with torch.inference_mode():
        inferred = torch.ones(2, device="cpu")
    return [whole, whole[1:], whole.conj().imag, nn.Parameter(torch.ones(5, device="cpu")), inferred]


def _handle() -> int:
    """Raises ValueError where it is not in one place."""
    samples = _samples()
    places = range(object.__basicsize__, Tensor.__basicsize__ - _POINTER + 1, _POINTER)
    found = [
        place
        for place in places
        if all(ctypes.c_size_t.from_address(id(tensor) + place).value == tensor._cdata for tensor in samples)
    ]
    (place,) = found
    return place


def told(calls: TensorCalls, tensor: Tensor) -> tuple[bool, bool, bool, int, int]:
    """What the functions say of a tensor, in the order of their names; -1 in place of a number where one failed."""
    handle, impl = id(tensor) + calls.handle, tensor._cdata
    says = ctypes.PYFUNCTYPE(ctypes.c_bool, ctypes.c_void_p)
    writes = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64))
    numbers = ctypes.c_int64(-1), ctypes.c_int64(-1)
    for number, function in zip(numbers, (calls.storage_size, calls.storage_offset), strict=True):
        writes(function)(handle, ctypes.byref(number))
    return (
        says(calls.is_neg)(handle),
        says(calls.is_inference)(handle),
        says(calls.requires_grad)(impl),
        numbers[0].value,
        numbers[1].value,
    )


def asked(tensor: Tensor) -> tuple[bool, bool, bool, int, int]:
    """The same of the tensor's methods."""
    return (
        tensor.is_neg(),
        tensor.is_inference(),
        tensor.requires_grad,
        tensor.untyped_storage().nbytes(),
        int(tensor.storage_offset()),
    )
