"""What the kernels are compiled for: how each dtype is read, compared and added up on each sort of device."""

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

import torch
import triton.language as tl


class Arithmetic(Enum):
    """What a device adds in, to keep to the promised accuracy at the least cost."""

    FLOAT64 = "float64 at a speed that keeps up with the memory: the data-centre devices"
    SLOW_FLOAT64 = "float32 with what its rounding lost; float64 for the few last steps, and for 64-bit values"
    FLOAT32 = "float32 with what its rounding lost, and nothing else"


@dataclass(frozen=True)
class Variant:
    """The constants of the kernels for one dtype; see there.

    Attributes:
        words: what the memory is read as.
        code: how such words are decoded.
        order: what extremes are taken in.
        added: what the few values of a group are added in.
        total: what groups are added in.
        row: the floats of a row.
        scaled: whether squares need scaling.
    """

    words: tl.dtype
    code: str
    order: tl.dtype
    added: tl.dtype
    total: tl.dtype
    row: tl.dtype
    scaled: bool


# Their squares keep to float32, and the sum of a few of them is as good there as in float64.
_NARROW: Final = {
    "float16": (tl.float16, "plain", tl.float32),
    "float8_e5m2": (tl.int8, "e5m2", tl.float32),
    "float8_e4m3fn": (tl.uint8, "e4m3fn", tl.float32),
    "float8_e4m3fnuz": (tl.uint8, "e4m3fnuz", tl.float32),
    "float8_e5m2fnuz": (tl.uint8, "e5m2fnuz", tl.float32),
    "complex32": (tl.int32, "complex32", tl.float32),
    "bool": (tl.int8, "bool", tl.int32),
    "int8": (tl.int8, "plain", tl.int32),
    "uint8": (tl.uint8, "plain", tl.int32),
    "int16": (tl.int16, "plain", tl.int32),
    "uint16": (tl.uint16, "plain", tl.int32),
}
_WIDE: Final = {
    "bfloat16": (tl.bfloat16, "plain", tl.float32),
    "float32": (tl.float32, "plain", tl.float32),
    "float8_e8m0fnu": (tl.uint8, "e8m0", tl.float32),
    "int32": (tl.int32, "plain", tl.int32),
    "uint32": (tl.uint32, "plain", tl.int64),
}
_WIDEST: Final = {
    "float64": (tl.float64, "plain", tl.float64),
    "complex64": (tl.int64, "complex64", tl.float64),
    "complex128": (tl.float64, "complex128", tl.float64),
    "int64": (tl.int64, "plain", tl.int64),
    "uint64": (tl.int64, "uint64", tl.int64),
}
_NEED_FLOAT64: Final = frozenset({"float64", "complex128"})


def variants(arithmetic: Arithmetic, native_e4m3: bool) -> dict[torch.dtype, Variant]:
    """One per dtype that such a device has.

    Args:
        native_e4m3: whether it converts float8_e4m3fn by itself, as CUDA devices do from sm_89 on.
    """
    made = {name: _narrow(name, arithmetic) for name in _NARROW}
    made |= {name: _wide(name, arithmetic) for name in _WIDE}
    made |= {
        name: _widest(name, arithmetic)
        for name in _WIDEST
        if arithmetic is not Arithmetic.FLOAT32 or name not in _NEED_FLOAT64
    }
    if native_e4m3:
        made["float8_e4m3fn"] = replace(made["float8_e4m3fn"], words=tl.float8e4nv, code="plain")
    return {getattr(torch, name): variant for name, variant in made.items() if hasattr(torch, name)}


def _narrow(name: str, arithmetic: Arithmetic) -> Variant:
    total = tl.float64 if arithmetic is Arithmetic.FLOAT64 else tl.float32
    return Variant(*_NARROW[name], added=tl.float32, total=total, row=_row(arithmetic), scaled=False)


def _wide(name: str, arithmetic: Arithmetic) -> Variant:
    words, code, order = _WIDE[name]
    total = tl.float64 if arithmetic is Arithmetic.FLOAT64 else tl.float32
    scaled = total is tl.float32 and order is tl.float32
    return Variant(words, code, order, added=total, total=total, row=_row(arithmetic), scaled=scaled)


def _widest(name: str, arithmetic: Arithmetic) -> Variant:
    words, code, order = _WIDEST[name]
    if arithmetic is not Arithmetic.FLOAT32:
        return Variant(words, code, order, tl.float64, tl.float64, tl.float64, scaled=name in _NEED_FLOAT64)
    order = tl.float32 if order is tl.float64 else order
    return Variant(words, code, order, tl.float32, tl.float32, tl.float32, scaled=True)


def _row(arithmetic: Arithmetic) -> tl.dtype:
    return tl.float32 if arithmetic is Arithmetic.FLOAT32 else tl.float64
