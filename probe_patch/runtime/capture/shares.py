"""What one call passes on to one tensor: its share of the gradient there, from all nodes that bring a part of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch.autograd.graph import get_gradient_edge

from probe_patch.runtime.stats.apart import apart_from_the_run
from probe_patch.runtime.stats.plain import is_dtensor

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor
    from torch.autograd.graph import Node

    from probe_patch.runtime.capture.gradients import Backward
    from probe_patch.runtime.capture.session import Session


class Edge(NamedTuple):
    """Where a gradient goes: a node and which of its outputs' gradients."""

    node: Node
    number: int


def edge_of(tensor: Tensor) -> Edge | None:
    if not tensor.requires_grad:
        return None
    edge = get_gradient_edge(tensor)
    return Edge(edge.node, edge.output_nr)


class Share:
    """What one call passes on to one tensor, over all the nodes that do.

    Attributes:
        inputs: which of the call's inputs the tensor is.
        parts: how many parts a backward pass through everything brings.
    """

    def __init__(self, session: Session, backward: Backward) -> None:
        self._session = session
        self._backward = backward
        self._sum: Tensor | None = None
        self._pass = -1
        self._missing = 0
        self._is_over = False
        self.inputs: list[int] = []
        self.parts = 0

    def add(self, gradient: Tensor | None) -> None:
        """Called in a backward pass, by one who has entered the session."""
        if self._is_over:
            return
        graph_pass: int = torch._C._current_graph_task_id()
        if graph_pass != self._pass:
            # An earlier pass, if any, has failed.
            self._pass, self._sum, self._missing = graph_pass, None, self.parts
            if self.parts > 1:
                self._session.gradients.finish_after_pass(self, graph_pass)
        self._missing -= 1
        if gradient is not None and self._sum is not None and not _can_be_added(self._sum, gradient):
            self.give_up()
            return
        if gradient is not None:
            with apart_from_the_run(), torch.no_grad():
                self._sum = gradient if self._sum is None else self._sum + gradient
        if self._missing == 0:
            self.finish()

    def give_up(self) -> None:
        """A part is not to be had, so there will be no record."""
        self._is_over, self._sum = True, None

    def finish(self) -> None:
        """Record the sum and let go of it."""
        gradient, self._sum = self._sum, None
        if self._is_over or gradient is None:
            return
        self._is_over = True
        session, backward = self._session, self._backward
        if session.gradients.takes(backward) and session.wanted.outputs:
            recorder = session.store.recorder
            with recorder.recording():
                for number in self.inputs:
                    backward.passed_on[number] = recorder.passed_on(backward.call.backward, number, gradient)
        backward.shares -= 1
        if backward.shares == 0:
            session.store.selection.end_backward(backward.call)


class Passing:
    """The hook of one node: some of the gradients it passes on are parts of shares."""

    def __init__(self, session: Session, passes: Sequence[tuple[int, Share]]) -> None:
        self._session = session
        self._passes = passes

    def __call__(self, passed_on: tuple[Tensor | None, ...], arrived: tuple[Tensor | None, ...]) -> None:
        if not self._session.enter():
            for _, share in self._passes:
                share.give_up()
            return
        try:
            for number, share in self._passes:
                share.add(passed_on[number])
        except Exception as error:
            for _, share in self._passes:
                share.give_up()
            self._session.store.problems.note("recording a gradient", error)
        finally:
            self._session.leave()


def nodes_that_pass_on(
    outputs: Sequence[Edge | None], ends: set[Edge], shares: dict[Edge, Share], since: int
) -> Iterator[tuple[Node, list[tuple[int, Share]]]]:
    """The nodes made since then that pass parts of shares on, with the numbers of what they pass."""
    starts = {edge.node for edge in outputs if edge is not None and edge not in ends}
    waiting = [node for node in starts if node._sequence_nr() >= since]
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        passes = []
        for number, (behind, output_number) in enumerate(node.next_functions):
            if behind is None:
                continue
            edge = Edge(behind, output_number)
            if edge in shares:
                passes.append((number, shares[edge]))
            elif edge not in ends and behind not in seen and behind._sequence_nr() >= since:
                seen.add(behind)
                waiting.append(behind)
        if passes:
            yield node, passes


def _can_be_added(one: Tensor, other: Tensor) -> bool:
    """Whether the sum needs no communication."""
    if is_dtensor(one) and is_dtensor(other):
        return bool(one.placements == other.placements)  # type: ignore[attr-defined]
    return is_dtensor(one) == is_dtensor(other)
