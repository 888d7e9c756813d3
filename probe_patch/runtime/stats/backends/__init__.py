"""What measures on which device: several tensors in, one row of numbers each."""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from probe_patch.runtime.stats.kinds import Kind
from probe_patch.runtime.stats.rows import Block


class Backend(Protocol):
    """One way to measure on one device, with or without counts. Its module has ``make(device, counts)``, which raises
    ``BackendUnavailable`` where it cannot be had.

    The promise: max, min, mean (against mean|x|) and L2 norm within 1e-6 relative of float64; NaN is the max and the
    min of what holds one; the mean of what holds infinities is that of float64 arithmetic.
    """

    @property
    def name(self) -> str:
        """``triton``, ``npu``, ``cpu`` or ``reference``."""
        ...

    @property
    def shortcoming(self) -> str | None:
        """Why it is slower than it could be here, in a sentence; None where it is not."""
        ...

    @property
    def accumulator(self) -> torch.dtype:
        """The dtype of the floats in a row."""
        ...

    def measure(self, values: Sequence[Tensor], kinds: Sequence[Kind], block: Block, first: int) -> None:
        """Write the numbers of ``values[i]`` into row ``first + i`` of the block, as ``rows.Block`` describes them.

        Nothing waits for the device, and nothing is kept of the values. Called inside ``ApartFromTheRun``.

        Args:
            values: plain, readable, detached, with at least one element each; of any dtype in ``kinds`` and any
                strides; on the block's device. No more of them than rows are left.
        """
        ...
