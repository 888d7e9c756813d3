"""What flows back through recorded calls: the gradients of their outputs and of their inputs.

Nothing is added to the graph: full backward hooks would put views around a module's inputs and outputs, which in-place
operations break and which can reorder how gradients add up. A gradient of an output is taken as it arrives at that
tensor. Of an input, which others may use as well, the call's own share is taken: what the nodes made during the call
pass on to it in the first backward pass that reaches it. An input that the call hands on as it is has no share of its
own: recorded is what arrives at that tensor, over all its uses.

No node is held from here once the call is over: nodes hold activations.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.graph import get_gradient_edge

from probe_patch.runtime.capture.nested import tensors_in
from probe_patch.runtime.stats.apart import apart_from_the_run
from probe_patch.runtime.stats.plain import is_dtensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torch.autograd.graph import Node
    from torch.utils.hooks import RemovableHandle

    from probe_patch.runtime.capture.forms import Record
    from probe_patch.runtime.capture.names import ModuleName, NamedModule
    from probe_patch.runtime.capture.nesting import Call
    from probe_patch.runtime.capture.session import Session
    from probe_patch.runtime.capture.wanted import Wanted


class _Edge(NamedTuple):
    """Where a gradient goes: a node and which of its outputs' gradients."""

    node: Node
    number: int


class Backward:
    """The backward of one call, from just before it runs.

    Attributes:
        call: the call.
        arrived: the gradients of its outputs, in their order; msProbe's key ``input``.
        passed_on: its shares of the gradients of its positional inputs that are tensors; msProbe's key ``output``.
        edges: where these inputs send their gradients; empty once the call is over.
        since: the number of the first node that the call may make.
        is_taken: whether it is recorded; None as long as nothing has arrived.
        shares: how many of its shares are still to come.
    """

    __slots__ = ("arrived", "call", "edges", "is_taken", "passed_on", "shares", "since")

    def __init__(self, call: Call, inputs: Sequence[Tensor]) -> None:
        self.call = call
        self.arrived: list[Record] = []
        self.edges: list[_Edge | None] = [_edge_of(tensor) for tensor in inputs]
        self.passed_on: list[Record] = [None] * len(inputs) if any(self.edges) else []
        self.since: int = torch.autograd._get_sequence_nr()  # type: ignore[attr-defined]
        self.is_taken: bool | None = None
        self.shares = 0

    def record(self, wanted: Wanted) -> dict[str, Record]:
        sides: tuple[tuple[str, bool, Record], ...] = (
            ("input", wanted.inputs, self.arrived),
            ("output", wanted.outputs, self.passed_on),
        )
        return {key: records for key, is_wanted, records in sides if is_wanted}


class Gradients:
    """The gradient hooks of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._handles: list[RemovableHandle] = []
        self._unfinished: dict[int, list[_Share]] = {}

    def before(self, call: Call, args: tuple[Any, ...]) -> Backward | None:
        """Look at the inputs, which the call may overwrite. None where nothing can flow back."""
        if not torch.is_grad_enabled():
            return None
        with apart_from_the_run():
            return Backward(call, list(tensors_in(args)))

    def after(self, backward: Backward, output: object) -> None:
        """Hook what the call has made."""
        with apart_from_the_run():
            outputs = list(tensors_in((output,)))
            edges = [_edge_of(tensor) for tensor in outputs]
            inputs, backward.edges = backward.edges, []
            backward.arrived = [None] * len(outputs)
            for index, (tensor, edge) in enumerate(zip(outputs, edges, strict=True)):
                if edge is not None:
                    handed_on = [number for number, behind in enumerate(inputs) if behind == edge]
                    self._handles.append(_hook(tensor, _Arrival(self._session, backward, index, handed_on)))
            self._watch_shares(backward, inputs, edges)

    def takes(self, backward: Backward) -> bool:
        """Whether this backward, to which something has just arrived, is recorded."""
        if backward.is_taken is None:
            store = self._session.store
            backward.is_taken = store.selection.begin_backward(backward.call) and store.admits(backward.call.backward)
            if backward.is_taken:
                store.add_backward(backward)
        return backward.is_taken

    def watch_parameters(self, named: NamedModule) -> list[RemovableHandle]:
        """The module's own parameters: each backward pass through one is a firing, and firings are numbered."""
        own = named.module.named_parameters(recurse=False, remove_duplicate=False)
        return [
            _hook(parameter, _ParameterGradient(self._session, named.name, name))
            for name, parameter in own
            if parameter.requires_grad
        ]

    def finish_after_pass(self, share: _Share, graph_pass: int) -> None:
        """Have the share finished when this backward pass is over. In one that fails it never is."""
        waiting = self._unfinished.get(graph_pass)
        if waiting is None:
            waiting = self._unfinished[graph_pass] = []
            engine = torch.autograd.Variable._execution_engine
            engine.queue_callback(partial(self._finish_pass, graph_pass))
        waiting.append(share)

    def remove(self) -> None:
        """Take the hooks off; of a pass that is still running or has failed, shares that are not whole are left out."""
        self._unfinished = {}
        handles, self._handles = self._handles, []
        for handle in handles:
            try:
                handle.remove()
            except Exception as error:  # noqa: PERF203
                self._session.store.problems.note("removing a hook", error)

    def _finish_pass(self, graph_pass: int) -> None:
        if not self._session.enter():
            return
        try:
            for share in self._unfinished.pop(graph_pass, []):
                share.finish()
        except Exception as error:
            self._session.store.problems.note("recording a gradient", error)
        finally:
            self._session.leave()

    def _watch_shares(
        self, backward: Backward, inputs: Sequence[_Edge | None], outputs: Sequence[_Edge | None]
    ) -> None:
        shares: dict[_Edge, _Share] = {}
        for number, edge in enumerate(inputs):
            if edge is not None and edge not in outputs:
                shares.setdefault(edge, _Share(self._session, backward)).inputs.append(number)
        if not shares:
            return
        backward.shares = len(shares)
        # An edge that is handed on ends the walk too: what lies behind it is not the call's.
        ends = {edge for edge in inputs if edge is not None}
        for node, passes in _passes(outputs, ends, shares, backward.since):
            for _, share in passes:
                share.parts += 1
            self._handles.append(node.register_hook(_Passing(self._session, passes)))


class _Share:
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
            for number in self.inputs:
                with apart_from_the_run():
                    backward.passed_on[number] = session.store.recorder.passed_on(
                        backward.call.backward, number, gradient
                    )
        backward.shares -= 1
        if backward.shares == 0:
            session.store.selection.end_backward(backward.call)


class _Passing:
    """The hook of one node: some of the gradients it passes on are parts of shares."""

    def __init__(self, session: Session, passes: Sequence[tuple[int, _Share]]) -> None:
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


class _Arrival:
    """The hook of one output: records the gradient, once, and lets it pass as it is."""

    __torch_unserializable__ = True  # who saves the tensor is not warned of our hook

    def __init__(self, session: Session, backward: Backward, index: int, handed_on: Sequence[int]) -> None:
        self._session = session
        self._backward = backward
        self._index = index
        self._handed_on = handed_on
        self._has_fired = False

    def __call__(self, gradient: Tensor) -> None:
        if self._has_fired or not self._session.enter():
            return
        self._has_fired = True
        try:
            if self._session.gradients.takes(self._backward):
                self._record(gradient)
            if self._backward.shares == 0:
                self._session.store.selection.end_backward(self._backward.call)
        except Exception as error:
            self._session.store.problems.note("recording a gradient", error)
        finally:
            self._session.leave()

    def _record(self, gradient: Tensor) -> None:
        backward, wanted, recorder = self._backward, self._session.wanted, self._session.store.recorder
        entry = backward.call.backward
        with apart_from_the_run():
            if wanted.inputs:
                backward.arrived[self._index] = recorder.arrived(entry, self._index, gradient)
            for number in self._handed_on if wanted.outputs else ():
                backward.passed_on[number] = recorder.passed_on(entry, number, gradient)


class _ParameterGradient:
    """The hook of one parameter."""

    __torch_unserializable__ = True

    def __init__(self, session: Session, module: ModuleName, parameter: str) -> None:
        self._session = session
        self._module = module
        self._parameter = parameter

    def __call__(self, gradient: Tensor) -> None:
        if not self._session.enter():
            return
        store = self._session.store
        try:
            entry = store.parameters_gradient(self._module, self._parameter)
            if not store.selection.takes_parameters_of(self._module) or not store.admits(entry):
                return
            with apart_from_the_run():
                record = store.recorder.parameter_gradient(entry, self._parameter, gradient)
            store.add_parameter_gradient(entry, self._parameter, record)
        except Exception as error:
            store.problems.note("recording a parameter's gradient", error)
        finally:
            self._session.leave()


def _passes(
    outputs: Sequence[_Edge | None], ends: set[_Edge], shares: dict[_Edge, _Share], since: int
) -> Iterator[tuple[Node, list[tuple[int, _Share]]]]:
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
            edge = _Edge(behind, output_number)
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


def _edge_of(tensor: Tensor) -> _Edge | None:
    if not tensor.requires_grad:
        return None
    edge = get_gradient_edge(tensor)
    return _Edge(edge.node, edge.output_nr)


def _hook(tensor: Tensor, hook: Callable[[Tensor], None]) -> RemovableHandle:
    handle: RemovableHandle = tensor.register_hook(hook)  # type: ignore[no-untyped-call]
    return handle
