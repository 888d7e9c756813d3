"""What flows back through one call, and the edges of the graph that lead out of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from probe_patch.runtime.capture.forms import Record
    from probe_patch.runtime.capture.forwards import Call
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
        inputs: how many of its positional inputs are tensors; 0 where none of them has a gradient.
        outputs: how many of its outputs are tensors.
        gradients: those that have arrived at its outputs, in their order, which are msProbe's key ``input``; behind
            them its shares of those of ``inputs``, msProbe's ``output``. Empty until it is taken.
        behind: the nodes to which these inputs send their gradients; of a leaf the tensor itself, and None of one that
            sends none. Empty once the call is over.
        numbers: which of the outputs of these nodes they are, or ``LEAF``; empty once the call is over.
        since: the number of the first node that the call may make.
        watched: how many nodes were watched before it.
        is_taken: whether it is recorded; None as long as nothing has arrived.
        shares: how many of its shares are still to come.
    """

    __slots__ = (
        "behind",
        "call",
        "gradients",
        "inputs",
        "is_taken",
        "numbers",
        "outputs",
        "shares",
        "since",
        "watched",
    )

    def __init__(self, call: Call, inputs: list[Tensor], watched: int) -> None:
        self.call = call
        self.gradients: list[Record] = NOTHING
        self.inputs = 0
        self.outputs = 0
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
            if node is not None:
                self.inputs = len(inputs)
            behind.append(node)
            numbers.append(number)
        self.behind = behind
        self.numbers = numbers

    def take(self) -> None:
        """It is recorded: something has arrived."""
        self.is_taken = True
        self.gradients = [None] * (self.outputs + self.inputs)

    def arrives(self, output: int, record: Record) -> None:
        """The gradient of one of its outputs."""
        self.gradients[output] = record

    def passes_on(self, number: int, record: Record) -> None:
        """Its share of the gradient of one of its inputs."""
        self.gradients[self.outputs + number] = record

    def record(self, wanted: Wanted) -> dict[str, Record]:
        record: dict[str, Record] = {}
        if wanted.inputs:
            record["input"] = self.gradients[: self.outputs]
        if wanted.outputs:
            record["output"] = self.gradients[self.outputs :]
        return record
