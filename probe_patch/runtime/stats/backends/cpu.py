"""Statistics on the host: by the compiled library, in one pass and one thread; where there is none, by torch.

The library gives the lock up only for what is large: for small tensors that costs more than the measuring.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import TYPE_CHECKING, Final, TypeVar

import torch
from torch import Tensor

from probe_patch.errors import BackendUnavailable
from probe_patch.runtime.stats.backends.chunked import Chunked
from probe_patch.runtime.stats.backends.library import DTYPES, NEGATED, WITH_COUNTS, Library, library
from probe_patch.runtime.stats.rows import ROW_BYTES, Block
from probe_patch.runtime.stats.tensor_calls import tensor_calls

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from probe_patch.runtime.stats.backends import Backend
    from probe_patch.runtime.stats.host_tensors import HostTensors
    from probe_patch.runtime.stats.kinds import Kind

T = TypeVar("T")

# Read in about 5 microseconds.
_LARGE: Final = 1 << 16

_MOST_DIMENSIONS: Final = 64

_DLPACK: Final = {
    **{(0, dtype.itemsize * 8): dtype for dtype in (torch.int8, torch.int16, torch.int32, torch.int64)},
    **{(2, dtype.itemsize * 8): dtype for dtype in (torch.float16, torch.float32, torch.float64)},
    **{(5, dtype.itemsize * 8): dtype for dtype in (torch.complex64, torch.complex128)},
    (1, 8): torch.uint8,
    (4, 16): torch.bfloat16,
    (6, 8): torch.bool,
}
"""Dtypes by their codes and bits in DLPack."""

_WITHOUT: Final = (
    "tensors on the host are measured by torch, which takes several times as long as the compiled library would "
    "({error}); install probe-patch again where there is a C compiler to have it"
)


class Compiled:
    """The compiled library.

    Floats of up to 32 bits are added up in float32, a few at a time, and then in float64; see ``native/kernels.c``.
    """

    name = "cpu"
    shortcoming = None
    accumulator = torch.float64

    def __init__(self, kernels: Library, counts: bool) -> None:
        self._kernels = kernels
        counted = WITH_COUNTS if counts else 0
        self._codes = {key: DTYPES[dtype] | counted for key, dtype in _DLPACK.items()}
        self._flags = {dtype: code | counted for dtype, code in DTYPES.items()}

    def host_tensors(self, describe: Callable[[Tensor], T]) -> HostTensors[T] | None:
        """What measures tensors as they come, more quickly than ``measure``; None where it is not there."""
        try:
            from probe_patch.runtime.stats.host_tensors import HostTensors

            return HostTensors(*self._kernels.addresses, self._codes, describe, tensor_calls())
        except (ImportError, AttributeError):
            return None

    def measure(self, values: Sequence[Tensor], kinds: Sequence[Kind], block: Block, first: int) -> None:
        """See ``Backend.measure``."""
        row = block.address + first * ROW_BYTES
        flags_of = self._flags
        calls: list[int] = []
        for tensor in values:
            count = tensor.numel()
            flags = flags_of[tensor.dtype]
            if tensor.is_neg():
                self._measure_negated(tensor, flags, row)
            elif not tensor.is_contiguous():
                self._measure_strided(tensor, flags, row)
            elif count >= _LARGE:
                self._kernels.measure(tensor.data_ptr(), count, flags, row)
            else:
                calls += (tensor.data_ptr(), count, flags, row)
            row += ROW_BYTES
        if calls:
            self._kernels.measure_many(_packing(len(calls))(*calls), len(calls) >> 2)

    def _measure_strided(self, tensor: Tensor, flags: int, row: int) -> None:
        shape = tensor.shape
        if len(shape) > _MOST_DIMENSIONS:
            tensor = tensor.contiguous()
            self._kernels.measure(tensor.data_ptr(), tensor.numel(), flags, row)
            return
        layout = _packing(2 * len(shape))(*shape, *tensor.stride())
        self._kernels.measure_strided(tensor.data_ptr(), len(shape), layout, flags, row)

    def _measure_negated(self, tensor: Tensor, flags: int, row: int) -> None:
        """What lies in memory is the opposite: of the imaginary part of a conjugate, say."""
        is_float = tensor.dtype.is_floating_point
        self._measure_strided(tensor if is_float else tensor.resolve_neg(), flags | NEGATED if is_float else flags, row)


def make(device: torch.device, counts: bool) -> Backend:
    """For the host's tensors.

    Raises:
        BackendUnavailable: it is another device.
    """
    if device.type != "cpu":
        raise BackendUnavailable(f"it measures what lies in the host's memory, not on {device.type}")
    try:
        return Compiled(library(), counts)
    except (OSError, ValueError) as error:
        return Chunked(counts, _WITHOUT.format(error=error))


@cache
def _packing(words: int) -> Callable[..., bytes]:
    return struct.Struct(f"={words}q").pack
