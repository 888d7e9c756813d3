"""What flows back through one call, and the edges of the graph that lead out of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from probe_patch.runtime.capture.forms import Record
    from probe_patch.runtime.capture.nesting import Call
    from probe_patch.runtime.capture.wanted import Wanted

Edge: TypeAlias = "tuple[Any, int]"
"""Where a gradient goes: a node, and which of its outputs' gradients; or a leaf's identity, and ``LEAF``. The node of
a leaf's gradient is only there while someone holds it."""

LEAF: Final = -1
"""In the place of the number."""

_get_sequence_number: Final[Callable[[], int]] = torch.autograd._get_sequence_nr  # type: ignore[attr-defined]


def edge_of(tensor: Tensor) -> Edge:
    """Of a tensor that requires gradients; good for as long as a leaf is held."""
    node = tensor.grad_fn
    return (id(tensor), LEAF) if node is None else (node, tensor.output_nr)


class Backward:
    """The backward of one call, from just before it runs.

    Attributes:
        call: the call.
        arrived: the gradients of its outputs, in their order; msProbe's key ``input``.
        passed_on: its shares of the gradients of its positional inputs that are tensors; msProbe's key ``output``.
        edges: where these inputs send their gradients; empty once the call is over.
        leaves: those of them that are leaves, which their edges do not keep; empty once the call is over.
        since: the number of the first node that the call may make.
        is_taken: whether it is recorded; None as long as nothing has arrived.
        shares: how many of its shares are still to come.
    """

    __slots__ = ("arrived", "call", "edges", "is_taken", "leaves", "passed_on", "shares", "since")

    def __init__(self, call: Call, inputs: Sequence[Tensor]) -> None:
        self.call = call
        self.arrived: list[Record] = []
        self.edges: list[Edge | None] = []
        self.leaves: list[Tensor] = []
        for tensor in inputs:
            edge = edge_of(tensor) if tensor.requires_grad else None
            self.edges.append(edge)
            if edge is not None and edge[1] == LEAF:
                self.leaves.append(tensor)
        self.passed_on: list[Record] = [None] * len(inputs) if any(self.edges) else []
        self.since: int = _get_sequence_number()
        self.is_taken: bool | None = None
        self.shares = 0

    def record(self, wanted: Wanted) -> dict[str, Record]:
        record: dict[str, Record] = {}
        if wanted.inputs:
            record["input"] = self.arrived
        if wanted.outputs:
            record["output"] = self.passed_on
        return record
