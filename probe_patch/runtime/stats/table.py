"""Statistics kept on the device, one row per tensor, and read with one copy per device."""

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor

from probe_patch.runtime.problems import Problems
from probe_patch.runtime.stats.backends.cpu import Compiled
from probe_patch.runtime.stats.backends.registry import Backends, backends_of_the_process
from probe_patch.runtime.stats.kinds import Kind
from probe_patch.runtime.stats.rows import (
    DEVICES,
    NO_ROWS,
    ROW_BYTES,
    ROWS_PER_BLOCK,
    Block,
    DeviceReadings,
    Readings,
    read_rows,
)
from probe_patch.runtime.stats.streams import streams_of

NO_ROW: Final = -1
"""Of an empty tensor."""


class StatisticsTable:
    """Rows are reserved one by one, written at each ``launch`` and read all at once, without waiting for the device
    before. One thread at a time (see ``Store.lock``).

    Args:
        problems: told of tensors that could not be measured, and of backends that could not be had.
        counts: whether NaN, infinities and zeros are counted too.
        backends: what measures; by default what the process has.
        describe: makes, of a tensor, what ``take`` returns of all that look like it; without, it takes none.

    Attributes:
        row: the number in ``Readings`` of what was taken last.
    """

    def __init__(
        self,
        problems: Problems,
        counts: bool = False,
        backends: Backends | None = None,
        describe: Callable[[Tensor], Any] | None = None,
    ) -> None:
        self._problems = problems
        self._counts = counts
        self._backends = backends or backends_of_the_process()
        self._devices: dict[torch.device, DeviceRows] = {}
        # One of them, as asking a tensor for its device takes long.
        self._host: DeviceRows | None = None
        self._describe = describe
        self.row = NO_ROW
        self._is_waiting = False
        self._most_devices = DEVICES

    def add(self, values: Tensor, kind: Kind) -> int:
        """Reserve a row for a plain, detached tensor of this kind, to be measured by the next ``launch``.

        Returns:
            its number in ``Readings``.
        """
        rows = self._host if values.is_cpu else self._devices.get(values.device)
        if rows is None:
            rows = self._begin(values.device)
        self._is_waiting = True
        return rows.add(values, kind) * self._most_devices + rows.number

    def take(self, tensor: Tensor) -> Any:
        """Measure a whole tensor at once, if that is quicker than to add it; ``row`` is then its number.

        Returns:
            what ``describe`` makes of tensors that look like it; None where it was not measured.
        """
        rows = self._host
        if rows is None:
            if self._describe is None or not tensor.is_cpu:
                return None
            rows = self._begin(tensor.device)
        quick = rows.quick
        if quick is None or rows.waiting:
            return None
        description = quick.take(tensor, rows)
        if description is not None:
            row = quick.row
            self.row = row * self._most_devices + rows.number if row >= 0 else NO_ROW
        return description

    def launch(self) -> None:
        """Measure what was added since the last launch, as one batch per device. The values may change from then on.

        What fails is a problem, and ``Readings.has`` is false of its row.
        """
        if not self._is_waiting:
            return
        self._is_waiting = False
        for rows in self._devices.values():
            if rows.waiting:
                rows.launch()

    def read(self) -> Readings:
        """Everything added since the last read. The device memory is given up."""
        self.launch()
        devices, self._devices, self._host = self._devices, {}, None
        return Readings([rows.read() for rows in devices.values()])

    def _begin(self, device: torch.device) -> "DeviceRows":
        rows = DeviceRows(device, len(self._devices), self._counts, self._backends, self._problems, self._describe)
        self._devices[device] = rows
        if device.type == "cpu":
            self._host = rows
        return rows


class DeviceRows:
    """The rows on one device.

    Attributes:
        number: of the device.
        used: how many rows are reserved.
        waiting: values that are added and not yet measured.
    """

    def __init__(
        self,
        device: torch.device,
        number: int,
        counts: bool,
        backends: Backends,
        problems: Problems,
        describe: Callable[[Tensor], Any] | None,
    ) -> None:
        self._device = device
        self.number = number
        self._counts = counts
        self._backends = backends
        self._problems = problems
        self._found = backends.on(device, counts)
        backend = self._found.backend
        self._accumulator = backend.accumulator
        self.quick = backend.host_tensors(describe) if describe is not None and isinstance(backend, Compiled) else None
        self._blocks: list[Block] = []
        self._room = self._next = 0
        self._row_bytes = ROW_BYTES
        self._streams = streams_of(device)
        self._unmeasured: set[int] = set()
        self.used = 0
        self.waiting: list[Tensor] = []
        self._kinds: list[Kind] = []
        if self._found.shortcoming is not None:
            # The log has been told, once per process.
            problems.keep("choosing a statistics backend", self._found.shortcoming)

    def add(self, values: Tensor, kind: Kind) -> int:
        """The number of the row that is reserved."""
        if self._room == 0:
            # One launch writes into one block.
            self.launch()
        number = self.used
        self.reserve()
        self.waiting.append(values)
        self._kinds.append(kind)
        return number

    def reserve(self) -> int:
        """The address of one more row, to be written at once or, in its turn among what is waiting, by ``launch``."""
        if self._room == 0:
            self._begin_block()
        self.used += 1
        self._room -= 1
        address = self._next
        self._next = address + self._row_bytes
        return address

    def _begin_block(self) -> None:
        block = Block(self._device, self._accumulator)
        self._blocks.append(block)
        self._room, self._next = ROWS_PER_BLOCK, block.address

    def launch(self) -> None:
        values, self.waiting = self.waiting, []
        kinds, self._kinds = self._kinds, []
        if not values:
            return
        block, first = self._blocks[-1], (self.used - len(values)) % ROWS_PER_BLOCK
        self._streams.note()
        try:
            self._found.backend.measure(values, kinds, block, first)
        except Exception as error:
            self._give_up(error)
            self._measure_one_by_one(values, kinds, block, first)

    def read(self) -> DeviceReadings:
        if not self._blocks:
            return NO_ROWS
        # Rows may have been written on other streams than the one that copies them.
        self._streams.wait()
        words = torch.cat([block.words for block in self._blocks])[: self.used].cpu()
        return read_rows(words, self._accumulator, self._counts, self._unmeasured)

    def _give_up(self, error: Exception) -> None:
        before = self._found
        self._found = self._backends.after_failure(self._device, self._counts, error)
        if self._found is not before and self._found.shortcoming is not None:
            self._problems.keep("choosing a statistics backend", self._found.shortcoming)

    def _measure_one_by_one(self, values: list[Tensor], kinds: list[Kind], block: Block, first: int) -> None:
        """Measure each that can be, with the backend that does not fail for reasons of its own."""
        for number, (tensor, kind) in enumerate(zip(values, kinds, strict=True)):
            try:
                self._found.backend.measure([tensor], [kind], block, first + number)
            except Exception as error:  # noqa: PERF203
                self._unmeasured.add(self.used - len(values) + number)
                self._problems.note("measuring a tensor", error)
