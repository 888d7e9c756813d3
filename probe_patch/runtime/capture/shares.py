"""What one call passes on to one tensor: its share of the gradient there, from all nodes that bring a part of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import torch
from torch._C import _current_graph_task_id

from probe_patch.runtime.capture.backward import LEAF
from probe_patch.runtime.capture.moments import GradientNow
from probe_patch.runtime.stats.plain import is_dtensor

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from torch import Tensor
    from torch.autograd.graph import Node
    from torch.utils.hooks import RemovableHandle

    from probe_patch.runtime.capture.backward import Backward, Edge
    from probe_patch.runtime.capture.session import Session

_ACCUMULATE: Final[Any] = torch._C._functions.AccumulateGrad  # type: ignore[attr-defined]


class Share:
    """What one call passes on to one tensor, over all the nodes that do.

    Attributes:
        backward: what the share is a part of.
        inputs: which of the call's inputs the tensor is.
        parts: how many parts a backward pass through everything brings.
        is_over: whether nothing more is taken.
    """

    __slots__ = ("_missing", "_pass", "_session", "_sum", "backward", "inputs", "is_over", "parts")

    def __init__(self, session: Session, backward: Backward, number: int) -> None:
        self._session = session
        self.backward = backward
        self._sum: Tensor | None = None
        self._pass = -1
        self._missing = 0
        self.inputs = [number]
        self.parts = 0
        self.is_over = False

    def add(self, gradient: Tensor | None) -> None:
        """Add one of several parts. Called in a backward pass, by one who has entered the session."""
        graph_pass: int = _current_graph_task_id()
        if graph_pass != self._pass:
            # An earlier pass, if any, has failed.
            self._pass, self._sum, self._missing = graph_pass, None, self.parts
            self._session.gradients.finish_after_pass(self, graph_pass)
        self._missing -= 1
        if gradient is not None and self._sum is not None and not _can_be_added(self._sum, gradient):
            self.give_up()
            return
        if gradient is not None:
            self._sum = gradient if self._sum is None else self._sum + gradient
        if self._missing == 0:
            self.finish()

    def give_up(self) -> None:
        """A part is not to be had, so there will be no record."""
        self.is_over, self._sum = True, None

    def finish(self) -> None:
        """Record the sum and let go of it."""
        gradient, self._sum = self._sum, None
        if gradient is not None and not self.is_over:
            self.record(GradientNow(self._session.store.recorder, gradient))

    def record(self, gradient: GradientNow) -> None:
        """Record the whole share."""
        self.is_over = True
        session, backward = self._session, self.backward
        if session.gradients.takes(backward) and session.takes_outputs:
            for number in self.inputs:
                backward.passed_on[number] = gradient.passed_on(backward.call, number)
        backward.shares -= 1
        if backward.shares == 0:
            session.store.selection.end_backward(backward.call)


Passed: TypeAlias = "list[tuple[int, Share]]"
"""What a node passes on, by number: parts of these shares."""


class Passing:
    """The hook of one node: some of the gradients it passes on are parts of shares, of one call or of several."""

    __slots__ = ("_session", "_shares")

    def __init__(self, session: Session, shares: Passed) -> None:
        self._session = session
        self._shares = shares

    def join(self, session: Session, shares: Passed) -> bool:
        """Let those of another call come with it. False where that is not possible."""
        if session is not self._session:
            return False
        self._shares += shares
        return True

    @property
    def backwards(self) -> Iterator[Backward]:
        """To which more may come from here."""
        return (share.backward for _, share in self._shares if not share.is_over)

    def __call__(self, passed_on: tuple[Tensor | None, ...], arrived: tuple[Tensor | None, ...]) -> None:
        shares = self._shares
        if not shares:
            return
        if not self._session.enter():
            for _, share in shares:
                share.give_up()
            return
        try:
            self._take(shares, passed_on)
            self._shares = [one for one in shares if not one[1].is_over]
        except Exception as error:
            self._session.store.problems.note("recording a gradient", error)
        finally:
            self._session.leave()

    def _take(self, shares: Passed, passed_on: tuple[Tensor | None, ...]) -> None:
        store = self._session.store
        now: dict[int, GradientNow] = {}
        for number, share in shares:
            if share.is_over:
                continue
            try:
                part = passed_on[number]
                if share.parts > 1:
                    share.add(part)
                elif part is not None:
                    if number not in now:
                        now[number] = GradientNow(store.recorder, part)
                    share.record(now[number])
            except Exception as error:
                share.give_up()
                store.problems.note("recording a gradient", error)


def watch(session: Session, node: Node, shares: Passed) -> RemovableHandle | None:
    """Have a node bring parts of these shares. None where a hook that it has already does that.

    One that is the last of the node's: the run has no hook between, which could change what is passed on.
    """
    handle = node.register_hook(Passing(session, shares))
    hooks: Any = handle.hooks_dict_ref()
    if len(hooks) > 1:
        latest = reversed(hooks.values())
        next(latest)
        earlier = next(latest)
        if type(earlier) is Passing and earlier.join(session, shares):
            handle.remove()
            return None
    return handle


def passing_of(handle: RemovableHandle) -> Passing | None:
    """The hook that ``watch`` has put on a node; None once the node is gone."""
    hooks: Any = handle.hooks_dict_ref()
    found: Passing | None = None if hooks is None else hooks.get(handle.id)
    return found


def nodes_that_pass_on(
    outputs: Sequence[Edge], ends: Mapping[Edge, Share | None], since: int
) -> list[tuple[Node, Passed]]:
    """The nodes made since then that pass parts of shares on, with the numbers of what they pass.

    Each share is told how many parts it has. ``ends`` are where the walk ends: with a share, or with none.
    """
    end_nodes = {node for node, _ in ends}
    leaves = {node: share for (node, number), share in ends.items() if number == LEAF}
    seen: set[Any] = {None}
    waiting: list[Any] = []
    for edge in outputs:
        node, number = edge
        if number != LEAF and edge not in ends and node not in seen and node._sequence_nr() >= since:
            seen.add(node)
            waiting.append(node)
    passing: list[tuple[Node, Passed]] = []
    while waiting:
        node = waiting.pop()
        shares: Passed = []
        for number, edge in enumerate(node.next_functions):
            behind = edge[0]
            if behind in end_nodes and edge in ends:
                share = ends[edge]
            elif behind in seen:
                continue
            elif type(behind) is not _ACCUMULATE:
                if behind._sequence_nr() >= since:
                    seen.add(behind)
                    waiting.append(behind)
                continue
            elif leaves:
                share = leaves.get(id(behind.variable))
            else:
                continue
            if share is not None:
                share.parts += 1
                shares.append((number, share))
        if shares:
            passing.append((node, shares))
    return passing


def _can_be_added(one: Tensor, other: Tensor) -> bool:
    """Whether the sum needs no communication."""
    if is_dtensor(one) and is_dtensor(other):
        return bool(one.placements == other.placements)  # type: ignore[attr-defined]
    return is_dtensor(one) == is_dtensor(other)
