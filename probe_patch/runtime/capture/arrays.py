"""Records of numpy arrays, in the form of msProbe's dump.json."""

import math
import sys
from typing import Any, Final

import torch
from torch import Tensor

from probe_patch.runtime.capture.forms import Record

_WIDEST: Final = {"b": 1, "i": 8, "u": 8, "f": 8, "c": 16}
"""By numpy's kinds, the bytes of the widest dtype that torch has too."""


def is_array(value: object) -> bool:
    """Whether it is a numpy array; false without importing numpy when no one has imported it."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def array_record(array: Any) -> dict[str, Record]:
    """Type, dtype and shape of the array, and the numbers of its values; masked ones are none of them."""
    numpy = sys.modules["numpy"]
    values = array.compressed() if isinstance(array, numpy.ma.MaskedArray) else numpy.asarray(array)
    record: dict[str, Record] = {"type": "numpy.ndarray", "dtype": str(array.dtype), "shape": list(array.shape)}
    if values.size == 0 or values.dtype.kind not in "biuf":
        return record | dict.fromkeys(("Max", "Min", "Mean", "Norm"))
    wide = values.astype(numpy.float64)
    # A wider float than Python's has no form in JSON.
    exact = wide if values.dtype.kind == "f" else values
    return record | {
        "Max": exact.max().item(),
        "Min": exact.min().item(),
        "Mean": wide.mean().item(),
        "Norm": _norm(wide, numpy),
    }


def array_values(array: Any) -> Tensor | None:
    """The array as a tensor of its own, or None: of text, objects and masked values, and of dtypes that torch lacks."""
    numpy = sys.modules["numpy"]
    if isinstance(array, numpy.ma.MaskedArray) or array.dtype.itemsize > _WIDEST.get(array.dtype.kind, -1):
        return None
    return torch.from_numpy(numpy.array(array, dtype=array.dtype.newbyteorder("=")))


def _norm(wide: Any, numpy: Any) -> float:
    """The L2 norm of float64 values, whose squares may be beyond float64."""
    largest = float(abs(wide).max())
    scale = largest if 0 < largest < math.inf else 1.0
    norm: float = scale * numpy.linalg.norm(wide / scale).item()
    return norm
