"""What one call passes on to one tensor: its share of the gradient there, from all nodes that bring a part of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch._C import _current_graph_task_id

from probe_patch.runtime.capture.moments import GradientNow
from probe_patch.runtime.stats.plain import is_dtensor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor
    from torch.autograd.graph import Node

    from probe_patch.runtime.capture.backward import Backward
    from probe_patch.runtime.capture.session import Session


class Share:
    """What one call passes on to one tensor, over all the nodes that do.

    Attributes:
        backward: what the share is a part of.
        parts: how many parts a backward pass through everything brings.
        is_over: whether nothing more is taken.
    """

    __slots__ = ("_missing", "_number", "_others", "_pass", "_session", "_sum", "backward", "is_over", "parts")

    def __init__(self, session: Session, backward: Backward, number: int) -> None:
        self._session = session
        self.backward = backward
        self._number = number
        self._others: tuple[int, ...] = ()
        self._sum: Tensor | None = None
        self._pass = -1
        self._missing = 0
        self.parts = 0
        self.is_over = False

    def is_of_input_too(self, number: int) -> None:
        """The tensor is this input of the call as well."""
        self._others += (number,)

    def add(self, gradient: Tensor | None) -> None:
        """Add one of several parts. Called in a backward pass, by one who has entered the session."""
        graph_pass: int = _current_graph_task_id()
        if graph_pass != self._pass:
            # An earlier pass, if any, has failed.
            self._pass, self._sum, self._missing = graph_pass, None, self.parts
            self._session.gradients.finish_after_pass(self._session, self, graph_pass)
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
        session, backward, number = self._session, self.backward, self._number
        if backward.is_taken is None:
            session.gradients.begin(backward)
        if backward.is_taken and session.takes_outputs:
            backward.passes_on(number, gradient.passed_on(backward.call, number))
            for number in self._others:
                backward.passes_on(number, gradient.passed_on(backward.call, number))
        backward.shares -= 1
        if backward.shares == 0:
            session.store.selection.end_backward(backward.call)


class Part:
    """Something a node passes on that is a part of a share.

    Attributes:
        number: which of the gradients that the node passes on it is.
        share: the share.
        way: the nodes that it still goes through, each of which only gives it another form; None if there are none.
        later: the next one that the same node brings.
    """

    __slots__ = ("later", "number", "share", "way")

    def __init__(self, number: int, share: Share, way: list[Node] | None) -> None:
        self.number = number
        self.share = share
        self.way = way
        self.later: Part | None = None


class Passing:
    """The hook of one node: some of the gradients it passes on are parts of shares, of one call or of several.

    Attributes:
        session: whose it is.
    """

    __slots__ = ("_first", "session")

    def __init__(self, session: Session, first: Part) -> None:
        self.session = session
        self._first: Part | None = first

    def join(self, session: Session, first: Part) -> bool:
        """Let those of another call come with it. False where that is not possible."""
        if session is not self.session:
            return False
        last = self._first
        if last is None:
            self._first = first
            return True
        while last.later is not None:
            last = last.later
        last.later = first
        return True

    @property
    def backwards(self) -> Iterator[Backward]:
        """To which more may come from here."""
        part = self._first
        while part is not None:
            if not part.share.is_over:
                yield part.share.backward
            part = part.later

    def __call__(self, passed_on: tuple[Tensor | None, ...], arrived: tuple[Tensor | None, ...]) -> None:
        first = self._first
        if first is None:
            return
        session = self.session
        if not session.enter():
            _give_up(first)
            return
        try:
            if first.later is None:
                _take(session, first, passed_on, None)
            else:
                _take_all(session, first, passed_on)
            self._first = _those_to_come(first)
        except Exception as error:
            session.store.problems.note("recording a gradient", error)
        finally:
            session.leave()


def _take_all(session: Session, first: Part, passed_on: tuple[Tensor | None, ...]) -> None:
    now: dict[Any, GradientNow] = {}
    part: Part | None = first
    while part is not None:
        _take(session, part, passed_on, now)
        part = part.later


def _take(
    session: Session, part: Part, passed_on: tuple[Tensor | None, ...], now: dict[Any, GradientNow] | None
) -> None:
    share, way = part.share, part.way
    if share.is_over:
        return
    try:
        tensor = passed_on[part.number]
        if share.parts > 1:
            share.add(_at_its_end(way, tensor))
        elif tensor is not None:
            place = part.number if way is None else way[-1]
            gradient = None if now is None else now.get(place)
            if gradient is None:
                gradient = GradientNow(session.store.recorder, _at_its_end(way, tensor))
                if now is not None:
                    now[place] = gradient
            share.record(gradient)
    except Exception as error:
        share.give_up()
        session.store.problems.note("recording a gradient", error)


def _at_its_end(way: list[Any] | None, gradient: Any) -> Any:
    """What becomes of a gradient on its way."""
    if way is not None and gradient is not None:
        for node in way:
            gradient = node(gradient)
    return gradient


def _give_up(first: Part) -> None:
    part: Part | None = first
    while part is not None:
        part.share.give_up()
        part = part.later


def _those_to_come(first: Part) -> Part | None:
    """The parts of shares that are not over."""
    part: Part | None = first
    while part is not None and part.share.is_over:
        part = part.later
    first_to_come = latest = part
    while latest is not None:
        part = latest.later
        while part is not None and part.share.is_over:
            part = part.later
        latest.later = part
        latest = part
    return first_to_come


def watch(session: Session, node: Node, first: Part, may_be_watched: bool) -> Any:
    """Have a node bring parts of these shares.

    A hook that it has already, where it ``may_be_watched``, does that if it is the last of the node's: the run has no
    hook between, which could change what is passed on.

    Returns:
        a weak reference to the node's hooks; None where there is one already.
    """
    handle: Any = node.register_hook(Passing(session, first))
    hooks = handle.hooks_dict_ref
    if may_be_watched:
        latest = reversed(hooks().values())
        next(latest)
        earlier = next(latest, None)
        if type(earlier) is Passing and earlier.join(session, first):
            handle.remove()
            return None
    return hooks


def _can_be_added(one: Tensor, other: Tensor) -> bool:
    """Whether the sum needs no communication."""
    if is_dtensor(one) and is_dtensor(other):
        return bool(one.placements == other.placements)  # type: ignore[attr-defined]
    return is_dtensor(one) == is_dtensor(other)
