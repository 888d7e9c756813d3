"""Records of values that are not tensors, in the forms of msProbe's dump.json."""

import math
import sys
import zlib
from types import EllipsisType
from typing import Any, Final

import torch

from probe_patch.runtime.capture.forms import Record, WrittenRecord
from probe_patch.runtime.json_text import string_text

# Python refuses to write or read whole numbers above a length that can be set, though not below 640 digits.
_MOST_BITS: Final = 2048
_MOST: Final = (1 << _MOST_BITS) - 1
_LEAST: Final = -_MOST

# A run passes the same few values on in every step: their records are written once. Of others there is no end.
_MOST_WRITTEN: Final = 1024
_LONGEST_WRITTEN: Final = 64

_TRUE: Final = WrittenRecord('{"type": "bool", "value": true}')
_FALSE: Final = WrittenRecord('{"type": "bool", "value": false}')
_INTEGERS: Final[dict[int, WrittenRecord]] = {}
_FLOATS: Final[dict[float, WrittenRecord]] = {}
_STRINGS: Final[dict[str, WrittenRecord]] = {}

_TYPED_KEYWORDS: Final = frozenset({"dtype", "output_dtype", "device"})


def scalar_record(value: object, keyword: str | None) -> Record:
    """The record of a value that holds no others; None for whatever the format has no form for.

    Args:
        keyword: the keyword the value was passed under. A dtype or device is only written out under a few.
    """
    # Nearly all are one of these four.
    if type(value) is bool:
        return _TRUE if value else _FALSE
    if type(value) is int:
        return _INTEGERS.get(value) or _integer_record(value)
    if type(value) is float:
        return _FLOATS.get(value) or _float_record(value)
    if type(value) is str:
        return _STRINGS.get(value) or _string_record(value)
    if isinstance(value, int):
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


def _integer_record(value: int) -> Record:
    if not _LEAST <= value <= _MOST:
        return {"type": "int", "value": None}
    record = WrittenRecord(f'{{"type": "int", "value": {value}}}')
    if len(_INTEGERS) < _MOST_WRITTEN:
        _INTEGERS[value] = record
    return record


def _float_record(value: float) -> Record:
    # How those that are no numbers are written is the dump's choice; and the two zeros are equal, but not alike.
    if value == 0.0 or not math.isfinite(value):
        return {"type": "float", "value": value}
    record = WrittenRecord(f'{{"type": "float", "value": {value!r}}}')
    if len(_FLOATS) < _MOST_WRITTEN:
        _FLOATS[value] = record
    return record


def _string_record(value: str) -> Record:
    if len(value) > _LONGEST_WRITTEN:
        return {"type": "str", "value": value}
    record = WrittenRecord(f'{{"type": "str", "value": {string_text(value)}}}')
    if len(_STRINGS) < _MOST_WRITTEN:
        _STRINGS[value] = record
    return record


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
