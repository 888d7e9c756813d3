"""Records of values that are not tensors, in the forms of msProbe's dump.json."""

import sys
import zlib
from types import EllipsisType
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


def _distributed_record(value: Any) -> Record:
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available():
        return None
    if isinstance(value, distributed.ProcessGroup):
        ranks = distributed.get_process_group_ranks(value)
        return {"type": "torch.ProcessGroup", "group_ranks": ranks, "group_id": group_id(ranks)}
    if isinstance(value, distributed.ReduceOp | distributed.ReduceOp.RedOpType):
        return {"type": "torch.distributed.ReduceOp", "value": str(value)}
    return None


def group_id(ranks: list[int]) -> str:
    """msProbe's name for a process group."""
    return f"{zlib.crc32(str(ranks).encode()):08x}"


def _numpy_record(value: Any) -> Record:
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.generic):
        return None
    item = value.item()
    known = isinstance(item, bool | int | float | str)
    return {"type": type(value).__name__, "value": item} if known else None
