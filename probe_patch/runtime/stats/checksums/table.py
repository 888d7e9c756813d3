"""The checksums of one dump: of tensors on the host at once; on a device by kernels, read with one copy per device."""

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from probe_patch.errors import BackendUnavailable
from probe_patch.runtime.problems import Problems
from probe_patch.runtime.stats.checksums import by_torch, host_crc, host_xor
from probe_patch.runtime.stats.checksums.kernels_on import Kernels, kernels_on
from probe_patch.runtime.stats.checksums.layout import flat_pieces, raw
from probe_patch.runtime.stats.checksums.pending import (
    ROWS_PER_BLOCK,
    Block,
    Checksum,
    Part,
    PendingCrc32,
    PendingXor64,
)
from probe_patch.runtime.stats.streams import streams_of

Launch: TypeAlias = Callable[[Tensor, Block, int], None]
"""See ``Kernels``."""


class ChecksumTable:
    """Takes checksums at once, since the run may overwrite the values. One thread at a time (see ``Store.lock``).

    Args:
        problems: told of devices where checksums cost more than they should.
    """

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._devices: dict[torch.device, _DeviceRows] = {}

    def crc32(self, values: Tensor) -> Checksum:
        """zlib's CRC-32 of the bytes in row-major order; of none, 0.

        Args:
            values: plain and readable, of any dtype, shape and strides.
        """
        return host_crc.crc32(values) if values.is_cpu else self._rows(values.device).crc32(values)

    def xor64(self, values: Tensor) -> Checksum:
        """The exclusive or of the bytes as little-endian words of eight, zeros behind them; of none, 0.

        Args:
            values: as for ``crc32``.
        """
        return host_xor.xor64(values) if values.is_cpu else self._rows(values.device).xor64(values)

    def read(self) -> None:
        """Give all pending checksums their values. The device memory is given up."""
        devices, self._devices = self._devices, {}
        for rows in devices.values():
            rows.read()

    def _rows(self, device: torch.device) -> "_DeviceRows":
        rows = self._devices.get(device)
        if rows is None:
            rows = self._devices[device] = _DeviceRows(device, self._problems)
        return rows


class _DeviceRows:
    """The words of one device."""

    def __init__(self, device: torch.device, problems: Problems) -> None:
        self._device = device
        self._problems = problems
        self._blocks: list[Block] = []
        self._used = 0
        self._streams = streams_of(device)
        self._kernels: Kernels | None = None
        try:
            self._kernels = kernels_on(device)
        except BackendUnavailable as error:
            self._do_without(str(error))

    def crc32(self, values: Tensor) -> Checksum:
        if self._kernels is not None:
            try:
                return PendingCrc32(self._parts(values, self._kernels.crc32))
            except Exception as error:
                self._do_without(f"{type(error).__name__}: {error}")
        return host_crc.crc32_by_pieces(values)

    def xor64(self, values: Tensor) -> Checksum:
        if self._kernels is not None:
            try:
                return PendingXor64(self._parts(values, self._kernels.xor64))
            except Exception as error:
                self._do_without(f"{type(error).__name__}: {error}")
        return PendingXor64(self._parts(values, by_torch.xor64))

    def read(self) -> None:
        if not self._blocks:
            return
        # Words may have been written on other streams than the one that copies them.
        self._streams.wait()
        words = torch.cat([block.words for block in self._blocks]).cpu().view(-1, ROWS_PER_BLOCK)
        for block, found in zip(self._blocks, words.tolist(), strict=True):
            block.give_up(found)

    def _parts(self, values: Tensor, launch: Launch) -> list[Part]:
        """One for all of the values if their bytes lie as they are read. Others are copied on the device, in pieces: a
        word's bytes would have to be gathered one by one, which costs more than a copy."""
        return [self._part(raw(piece), launch) for piece in flat_pieces(values)]

    def _part(self, found: Tensor, launch: Launch) -> Part:
        row = self._used % ROWS_PER_BLOCK
        if row == 0:
            self._blocks.append(Block(self._device))
        # The word is used up even if the launch fails: it may have been written.
        self._used += 1
        self._streams.note()
        launch(found, self._blocks[-1], row)
        return Part(self._blocks[-1], row, found.numel())

    def _do_without(self, reason: str) -> None:
        self._kernels = None
        self._problems.note(
            "taking checksums on the device",
            f"there are no kernels for {self._device} ({reason}); CRC-32 is taken on the host, for which each tensor "
            "waits for the device",
        )
