"""Records of values that are not tensors, in the forms of msProbe's dump.json."""

import math
import sys
import zlib
from types import EllipsisType, ModuleType
from typing import Any, Final

import torch

from probe_patch.runtime.capture.forms import Record

# Python refuses to write or read whole numbers above a length that can be set, though not below 640 digits.
_MOST_BITS: Final = 2048

_TYPED_KEYWORDS: Final = frozenset({"dtype", "output_dtype", "device"})


def scalar_record(value: object, keyword: str | None) -> Record:
    """The record of a value that holds no others; None for whatever the format has no form for.

    Args:
        keyword: the keyword the value was passed under. A dtype or device is only written out under a few.
    """
    if isinstance(value, bool | int):
        return {"type": type(value).__name__, "value": _whole_number(value)}
    if isinstance(value, float | str):
        return {"type": type(value).__name__, "value": value}
    if isinstance(value, slice):
        return {
            "type": "slice",
            "value": [_whole_number(value.start), _whole_number(value.stop), _whole_number(value.step)],
        }
    if isinstance(value, EllipsisType):
        return {"type": "ellipsis", "value": "..."}
    if isinstance(value, torch.Size):
        return {"type": "torch.Size", "value": [int(length) for length in value]}
    if isinstance(value, torch.memory_format):
        return {"type": "torch.memory_format", "format": str(value).removeprefix("torch.")}
    if isinstance(value, torch.dtype):
        return {"type": "torch.dtype", "value": str(value)} if keyword in _TYPED_KEYWORDS else {}
    if isinstance(value, torch.device):
        return {"type": "torch.device", "value": str(value)} if keyword in _TYPED_KEYWORDS else {}
    return _distributed_record(value) or _numpy_record(value)


def _whole_number(value: object) -> int | None:
    """The number, or None when it is none or too long to be written."""
    return value if isinstance(value, int) and int.bit_length(value) <= _MOST_BITS else None


def is_point_to_point(value: object) -> bool:
    """Whether it is one send or receive of a batch."""
    operation = getattr(sys.modules.get("torch.distributed"), "P2POp", None)
    return operation is not None and isinstance(value, operation)


def group_id(group: Any) -> str:
    """How msProbe identifies a process group, None being the default one: a checksum of its ranks."""
    return _group_id(sys.modules["torch.distributed"].get_process_group_ranks(group))


def _distributed_record(value: Any) -> Record:
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available():
        return None
    if isinstance(value, distributed.ProcessGroup):
        ranks = distributed.get_process_group_ranks(value)
        return {"type": "torch.ProcessGroup", "group_ranks": ranks, "group_id": _group_id(ranks)}
    if isinstance(value, distributed.ReduceOp | distributed.ReduceOp.RedOpType):
        return {"type": "torch.distributed.ReduceOp", "value": str(value)}
    return None


def _group_id(ranks: list[int]) -> str:
    return f"{zlib.crc32(str(ranks).encode()):08x}"


def _numpy_record(value: Any) -> Record:
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    if isinstance(value, numpy.generic):
        item = value.item()
        known = isinstance(item, bool | int | float | str)
        return {"type": type(value).__name__, "value": item} if known else None
    return _array_record(numpy.asarray(value), numpy) if isinstance(value, numpy.ndarray) else None


def _array_record(array: Any, numpy: ModuleType) -> Record:
    record: dict[str, Record] = {"type": "numpy.ndarray", "dtype": str(array.dtype), "shape": list(array.shape)}
    if array.size == 0 or array.dtype.kind not in "biuf":
        return record | dict.fromkeys(("Max", "Min", "Mean", "Norm"))
    wide = array.astype(numpy.float64)
    return record | {
        "Max": array.max().item(),
        "Min": array.min().item(),
        "Mean": wide.mean().item(),
        "Norm": _array_norm(wide, numpy),
    }


def _array_norm(wide: Any, numpy: Any) -> float:
    """The L2 norm of float64 values, whose squares may be beyond float64."""
    largest = float(abs(wide).max())
    scale = largest if 0 < largest < math.inf else 1.0
    norm: float = scale * numpy.linalg.norm(wide / scale).item()
    return norm
