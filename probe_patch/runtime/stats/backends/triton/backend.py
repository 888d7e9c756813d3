"""Statistics by Triton's kernels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from probe_patch.runtime.stats.backends.triton.kernels.merging import merge_partials
from probe_patch.runtime.stats.backends.triton.kernels.one import measure_one
from probe_patch.runtime.stats.backends.triton.kernels.several import measure_several
from probe_patch.runtime.stats.backends.triton.launching import Launcher
from probe_patch.runtime.stats.backends.triton.layout import Dense, Strided, layout_of
from probe_patch.runtime.stats.backends.triton.queues import Queue
from probe_patch.runtime.stats.backends.triton.scratch import PARTIALS, Scratches
from probe_patch.runtime.stats.backends.triton.variants import Arithmetic, Variant, variants
from probe_patch.runtime.stats.kinds import Kind
from probe_patch.runtime.stats.rows import WORDS, Block

SEVERAL: Final = 16
"""How many tensors ``measure_several`` takes."""

EVEN: Final = 16
"""What sizes and strides are multiples of where 16 bytes can be loaded at once, whatever the dtype."""

_WARPS: Final = 8
_FEW_WARPS: Final = 4
_ROW_NUMBER: Final = 32
_ALIGNED: Final = 16

# Of the tiles of rows. Each is compiled for itself, so that they are few.
_WIDTHS: Final = (16, 128)

# Rows are numbered a little beyond their end.
_LONGEST: Final = (1 << 31) - (1 << 16)

_NOWHERE: Final = (0,) * (2 * SEVERAL)
_NO_ROWS: Final = (1, 1, 1, 1, 1, 1, 1, 1)


@dataclass(frozen=True)
class Tuning:
    """Sizes that change how quick a reduction is, not what it finds.

    Attributes:
        programs: how many share a large tensor at the most; no more than ``PARTIALS``.
        tile: how many elements of 32 bits a program reads at once; a power of two. Of smaller ones, twice as many.
        group: how many tiles it reads before it adds them to its totals.
        small: up to how many elements a tensor is left to one program.
    """

    programs: int
    tile: int = 1024
    group: int = 4
    small: int = 16384


class Plan:
    """What is launched for one dtype: everything that does not depend on the tensor."""

    def __init__(self, variant: Variant, counts: bool, tuning: Tuning) -> None:
        self.variant = variant
        self.tile = _tile(variant, tuning.tile)
        self.group = tuning.group
        words_per_float = 2 if variant.row is tl.float32 else 1
        self._row = (WORDS * words_per_float, WORDS)
        self._numbers = (variant.code, variant.order, variant.added, variant.total, variant.row, variant.scaled, counts)
        self.several = {
            even: (variant.words, *self._row, *self._numbers, self.tile, self.group, even) for even in (False, True)
        }
        self.merging = (*self._row, variant.order, variant.added, variant.row, variant.scaled, counts, PARTIALS)

    def one(self, shape: "Shape") -> tuple[object, ...]:
        """The constants of ``measure_one``."""
        return (*self._row, *self._numbers, *shape.constants(self.tile, self.group), PARTIALS)


class Shape(NamedTuple):
    """What ``measure_one`` is compiled for besides the dtype.

    Attributes:
        width: of a tile; 0 of a dense tensor's.
        is_long: whether the number of a row takes more than 32 bits.
        even: whether 16 bytes can be loaded at once.
        unit: whether a row's elements lie side by side.
        alone: whether one program does it all.
    """

    width: int
    is_long: bool
    even: bool
    unit: bool
    alone: bool

    def constants(self, tile: int, group: int) -> tuple[object, ...]:
        """From ``DENSE`` to ``ALONE``."""
        dense = not self.width
        index = tl.int64 if self.is_long else tl.int32
        width = self.width or tile
        return (dense, index, tile // width, width, group, self.even, self.unit, self.alone)


class TritonBackend:
    """Statistics on one device, with or without counts.

    Small tensors that are dense in memory are measured with one launch for up to sixteen of one dtype. Each other one
    has its own, and a second to merge the partial results of several programs. Nothing is copied but tensors with more
    than four dimensions that do not continue each other in memory, and those with a pending negation.

    Everything can be captured in a CUDA graph once each kernel has run before, since loading one is not allowed there.

    Args:
        arithmetic: what the device adds in.
        native_e4m3: see ``variants``.
    """

    name = "triton"
    shortcoming = None

    def __init__(
        self,
        device: torch.device,
        counts: bool,
        arithmetic: Arithmetic,
        native_e4m3: bool,
        queue: Queue,
        tuning: Tuning,
    ) -> None:
        self.accumulator = torch.float32 if arithmetic is Arithmetic.FLOAT32 else torch.float64
        self._tuning = tuning
        self._plans = {
            dtype: Plan(variant, counts, tuning) for dtype, variant in variants(arithmetic, native_e4m3).items()
        }
        self._queue = queue
        self._scratches = Scratches(device, self.accumulator, queue)
        self._several = Launcher(measure_several)
        self._one = Launcher(measure_one)
        self._merge = Launcher(merge_partials)
        self._ones: dict[tuple[Plan, Shape], tuple[object, ...]] = {}

    def measure(self, values: Sequence[Tensor], kinds: Sequence[Kind], block: Block, first: int) -> None:
        """See ``Backend.measure``; ``kinds`` follow from the dtypes.

        Raises:
            KeyError: the device has no such dtype.
        """
        with self._queue.selected():
            self._measure(values, block, first)

    def _measure(self, values: Sequence[Tensor], block: Block, first: int) -> None:
        small = self._tuning.small
        waiting: dict[tuple[Plan, bool], list[int]] = {}
        copies: list[Tensor] = []
        for row, tensor in enumerate(values, first):
            plan = self._plans[tensor.dtype]
            if tensor.is_neg():
                tensor = tensor.resolve_neg()
                copies.append(tensor)
            count = tensor.numel()
            if count <= small and tensor.is_contiguous():
                address = tensor.data_ptr()
                waiting.setdefault((plan, address % _ALIGNED == 0), []).extend((address, row << _ROW_NUMBER | count))
            else:
                self._measure_one(plan, tensor, block, row)
        for (plan, even), places in waiting.items():
            for start in range(0, len(places), 2 * SEVERAL):
                some = places[start : start + 2 * SEVERAL]
                arguments = (block.floats, block.integers, *some, *_NOWHERE[len(some) :])
                self._several((plan, even), len(some) // 2, arguments, plan.several[even], _FEW_WARPS)

    def _measure_one(self, plan: Plan, tensor: Tensor, block: Block, row: int) -> None:
        layout = layout_of(tensor.shape, tensor.stride())
        if layout is None:
            tensor = tensor.contiguous()
            layout = Dense(tensor.numel(), 1)
        programs = 1
        if layout.count > self._tuning.small:
            programs = min(self._tuning.programs, -(-layout.count // (plan.tile * plan.group)))
        shape, strides = _shape_of(layout, plan.tile, programs == 1)
        constants = self._ones.get((plan, shape))
        if constants is None:
            constants = self._ones[plan, shape] = plan.one(shape)
        key = (plan, shape, tensor.data_ptr() % _ALIGNED == 0)
        pointer = triton.reinterpret(tensor, plan.variant.words)
        numbers = (layout.count, layout.weight, row, *strides)
        if programs == 1:
            self._one(key, 1, (pointer, block.floats, block.integers, *numbers), constants, _WARPS)
            return
        scratch = self._scratches.now()
        partials = (scratch.floats, scratch.integers)
        # Another thread may measure on the same stream.
        with scratch.lock:
            self._one(key, programs, (pointer, *partials, *numbers), constants, _WARPS)
            merged = (*partials, block.floats, block.integers, programs, layout.count, layout.weight, row)
            self._merge(plan, 1, merged, plan.merging, _WARPS)


def _tile(variant: Variant, tile: int) -> int:
    """How many elements make a tile, so that a thread loads 4 to 16 bytes and keeps what it knows in registers."""
    if variant.code == "complex128":
        return tile // 4
    return tile // 2 if variant.words.primitive_bitwidth == 64 else tile


def _shape_of(layout: Dense | Strided, tile: int, alone: bool) -> tuple[Shape, tuple[int, ...]]:
    """What the kernel is compiled for, and its arguments from ``rows`` to ``stride3``."""
    if isinstance(layout, Dense):
        return Shape(0, False, False, False, alone), _NO_ROWS
    unit = layout.stride0 == 1
    even = unit and not any(number % EVEN for number in (layout.columns, *layout.strides))
    width = next((width for width in _WIDTHS if layout.columns <= width < tile), tile)
    shape = Shape(width, layout.rows > _LONGEST, even, unit, alone)
    return shape, (layout.rows, layout.columns, *layout.sizes, layout.stride0, *layout.strides)
