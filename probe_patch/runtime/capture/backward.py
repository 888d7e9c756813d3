"""What flows back through one call, and the edges of the graph that lead out of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from probe_patch.runtime.capture.forms import Record
    from probe_patch.runtime.capture.nesting import Call
    from probe_patch.runtime.capture.wanted import Wanted

LEAF: Final = -1
"""In the place of the number of a node's output: of a leaf, whose node is only there while someone holds it."""

NOTHING: Final[list[Any]] = []
"""In the place of lists that hold nothing: one for all, as they are many. Nothing is put into it."""

_get_sequence_number: Final[Callable[[], int]] = torch.autograd._get_sequence_nr  # type: ignore[attr-defined]


class Backward:
    """The backward of one call, from just before it runs.

    Attributes:
        call: the call.
        arrived: the gradients of its outputs, in their order; msProbe's key ``input``.
        passed_on: its shares of the gradients of its positional inputs that are tensors; msProbe's key ``output``.
        behind: the nodes to which these inputs send their gradients; of a leaf the tensor itself, and None of one that
            sends none. Empty once the call is over.
        numbers: which of the outputs of these nodes they are, or ``LEAF``; empty once the call is over.
        since: the number of the first node that the call may make.
        watched: how many nodes were watched before it.
        is_taken: whether it is recorded; None as long as nothing has arrived.
        shares: how many of its shares are still to come.
    """

    __slots__ = ("arrived", "behind", "call", "is_taken", "numbers", "passed_on", "shares", "since", "watched")

    def __init__(self, call: Call, inputs: list[Tensor], watched: int) -> None:
        self.call = call
        self.arrived: list[Record] = NOTHING
        self.passed_on: list[Record] = NOTHING
        self._look_at(inputs)
        self.since: int = _get_sequence_number()
        self.watched = watched
        self.is_taken: bool | None = None
        self.shares = 0

    def _look_at(self, inputs: list[Tensor]) -> None:
        behind: list[Any] = []
        numbers: list[int] = []
        for tensor in inputs:
            node: Any = tensor.grad_fn
            number = LEAF
            if node is not None:
                number = tensor.output_nr
            elif tensor.requires_grad:
                node = tensor
            if node is not None and self.passed_on is NOTHING:
                self.passed_on = [None] * len(inputs)
            behind.append(node)
            numbers.append(number)
        self.behind = behind
        self.numbers = numbers

    def record(self, wanted: Wanted) -> dict[str, Record]:
        record: dict[str, Record] = {}
        if wanted.inputs:
            record["input"] = self.arrived
        if wanted.outputs:
            record["output"] = self.passed_on
        return record
