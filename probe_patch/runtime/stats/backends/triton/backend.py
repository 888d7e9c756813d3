"""Statistics by Triton's kernels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
import triton
import triton.language as tl
from torch import Tensor

from probe_patch.runtime.stats.backends.triton.kernels.merging import merge_partials
from probe_patch.runtime.stats.backends.triton.kernels.one import measure_one
from probe_patch.runtime.stats.backends.triton.kernels.several import measure_several
from probe_patch.runtime.stats.backends.triton.launching import Launcher
from probe_patch.runtime.stats.backends.triton.layout import Dense, Strided, layout_of
from probe_patch.runtime.stats.backends.triton.scratch import PARTIALS, Queue, Scratches
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
        self.tile = _tile(variant, tuning)
        # What differs between the kernels, in the order of their arguments.
        numbers = (variant.code, variant.order, variant.added, variant.total, variant.row, variant.scaled, counts)
        per_word = 8 if variant.row is tl.float64 else 4
        strides = (WORDS, WORDS * 8 // per_word)
        self.numbers = numbers
        self.several = {
            even: (variant.words, *strides, *numbers, self.tile, tuning.group, even) for even in (False, True)
        }
        self.merging = (variant.order, variant.added, variant.row, variant.scaled, counts, PARTIALS)
