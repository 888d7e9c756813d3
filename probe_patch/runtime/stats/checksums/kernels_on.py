"""Kernels for checksums, where a device has them."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol

from probe_patch.errors import BackendUnavailable

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from probe_patch.runtime.stats.checksums.pending import Block


class Kernels(Protocol):
    """Each puts a checksum of [n] uint8, n at least 1, into a word that holds 0, without waiting for the device."""

    def crc32(self, raw: Tensor, block: Block, row: int) -> None:
        """zlib's CRC-32."""
        ...

    def xor64(self, raw: Tensor, block: Block, row: int) -> None:
        """The exclusive or of little-endian words of eight bytes, zeros behind them."""
        ...


_PACKAGES: Final = {"cuda": "triton", "npu": "triton-ascend"}


@cache
def kernels_on(device: torch.device) -> Kernels:
    """The kernels for this device; their tables are made once.

    Raises:
        BackendUnavailable: there are none.
    """
    package = _PACKAGES.get(device.type)
    if package is None:
        raise BackendUnavailable(f"none are written for {device.type}")
    try:
        backends = import_module("triton.backends").backends
        from probe_patch.runtime.stats.checksums.triton_kernels import TritonChecksums
    except Exception as error:
        raise BackendUnavailable(f"{type(error).__name__}: {error}; pip install {package}") from None
    # Either package is imported as triton.
    if device.type == "npu" and "ascend" not in backends:
        raise BackendUnavailable(f"the triton that is installed is not for it; pip install {package}")
    return TritonChecksums(device)
