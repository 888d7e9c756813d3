"""The way back through what one call has made: which nodes pass something on to the tensors that it was given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import torch

from probe_patch.runtime.capture.backward import LEAF
from probe_patch.runtime.capture.shares import Part, Share

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from torch.autograd.graph import Node

    from probe_patch.runtime.capture.backward import Backward
    from probe_patch.runtime.capture.session import Session

_FORMS: Final = frozenset(
    {"PermuteBackward0", "TBackward0", "TransposeBackward0", "UnsafeViewBackward0", "ViewBackward0"}
)
"""Nodes that pass on the one gradient that they get in another form: the same values, in what is behind's shape."""

_are_forms: Final[dict[type, bool]] = {}
"""Of the types of nodes that were met."""

_ACCUMULATE: Final[Any] = torch._C._functions.AccumulateGrad  # type: ignore[attr-defined]


class End:
    """Where a walk ends: one of a node's outputs, or a leaf.

    Attributes:
        number: which of the outputs; ``LEAF`` of a leaf.
        share: what goes there; None where what lies behind it is not the call's.
    """

    __slots__ = ("_others", "number", "share")

    def __init__(self, number: int, share: Share | None) -> None:
        self.number = number
        self.share = share
        self._others: dict[int, End] | None = None

    def add(self, other: End) -> None:
        """Another of the outputs of the same node."""
        if self._others is None:
            self._others = {}
        self._others[other.number] = other

    def at(self, number: int) -> End | None:
        """The end at this output of the same node."""
        if number == self.number:
            return self
        return None if self._others is None else self._others.get(number)


def nodes_that_pass_on(
    session: Session, backward: Backward, hands_on: Collection[int], outputs: Sequence[Node]
) -> list[tuple[Node, Part]]:
    """The nodes that a call has made and that pass on parts of its shares, with these parts.

    Each tensor that the call was given gets a share, except those that it ``hands_on`` as they are; and each share is
    told how many parts it has. Of a call that is sealed, nodes that only form gradients are left alone: what they pass
    on is known from what they get, as nobody has a hook on them, and torch takes microseconds to put one there.

    Args:
        session: what the shares are recorded in.
        backward: what flows back through the call.
        hands_on: numbers of the tensors that the call was given.
        outputs: the nodes behind what the call has given, if they may be its own.
    """
    ends: dict[Any, End] = {}
    has_leaves = _add_ends(ends, session, backward, hands_on)
    return [] if backward.shares == 0 else _walk(ends, has_leaves, outputs, backward)


def _add_ends(ends: dict[Any, End], session: Session, backward: Backward, hands_on: Collection[int]) -> bool:
    """The ends by their nodes, or by the identities of leaves; and whether there are leaves."""
    has_leaves = False
    numbers = backward.numbers
    place = -1
    for node in backward.behind:
        place += 1
        if node is None:
            continue
        number = numbers[place]
        key = node
        if number == LEAF:
            key = id(node)
            has_leaves = True
        first = ends.get(key)
        end = None if first is None else first.at(number)
        if end is not None:
            if end.share is not None:
                end.share.is_of_input_too(place)
            continue
        share = None
        if not hands_on or place not in hands_on:
            share = Share(session, backward, place)
            backward.shares += 1
        end = End(number, share)
        if first is None:
            ends[key] = end
        else:
            first.add(end)
    return has_leaves


def _only_forms(node: Node) -> bool:
    kind = type(node)
    known = _are_forms.get(kind)
    if known is None:
        known = _are_forms[kind] = kind.__name__ in _FORMS
    return known


def _walk(
    ends: dict[Any, End], has_leaves: bool, outputs: Sequence[Node], backward: Backward
) -> list[tuple[Node, Part]]:
    since, is_sealed = backward.since, backward.call.is_sealed
    seen: set[Any] = set()
    ahead: list[Any] = []
    for node in outputs:
        if node not in seen and node._sequence_nr() >= since:
            seen.add(node)
            ahead.append(node)
    passing: list[tuple[Node, Part]] = []
    for node in ahead:
        first = latest = None
        number = -1
        for edge in node.next_functions:
            number += 1
            end = way = None
            while True:
                behind = edge[0]
                if behind is None:
                    break
                end = ends.get(behind)
                if end is not None:
                    end = end.at(edge[1])
                    if end is not None:
                        break
                if type(behind) is _ACCUMULATE:
                    if has_leaves:
                        end = ends.get(id(behind.variable))
                    break
                if behind in seen or behind._sequence_nr() < since:
                    break
                if not is_sealed or not _only_forms(behind):
                    seen.add(behind)
                    ahead.append(behind)
                    break
                if way is None:
                    way = []
                way.append(behind)
                edge = behind.next_functions[0]
            if end is None or end.share is None:
                continue
            end.share.parts += 1
            part = Part(number, end.share, way)
            if latest is None:
                first = part
            else:
                latest.later = part
            latest = part
        if first is not None:
            passing.append((node, first))
    return passing
