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
from typing import TYPE_CHECKING, Any

import torch

from probe_patch.runtime.capture.nested import tensors_in
from probe_patch.runtime.capture.shares import Edge, Passing, Share, edge_of, nodes_that_pass_on
from probe_patch.runtime.capture.tensor_hooks import FirstGradientHook, TensorHook
from probe_patch.runtime.stats.apart import apart_from_the_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor
    from torch.utils.hooks import RemovableHandle

    from probe_patch.runtime.capture.forms import Record
    from probe_patch.runtime.capture.nesting import Call
    from probe_patch.runtime.capture.session import Session
    from probe_patch.runtime.capture.wanted import Wanted


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
        self.edges: list[Edge | None] = [edge_of(tensor) for tensor in inputs]
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
        self._handles: list[RemovableHandle | TensorHook] = []
        self._unfinished: dict[int, list[Share]] = {}

    def before(self, call: Call, args: tuple[Any, ...]) -> Backward | None:
        """Look at the inputs, which the call may overwrite. None where nothing can flow back, or not as itself."""
        if not torch.is_grad_enabled() or torch._C._functorch.maybe_current_level() is not None:
            return None
        with apart_from_the_run():
            return Backward(call, list(tensors_in(args)))

    def after(self, backward: Backward, output: object) -> None:
        """Hook what the call has made."""
        with apart_from_the_run():
            outputs = list(tensors_in((output,)))
            edges = [edge_of(tensor) for tensor in outputs]
            inputs, backward.edges = backward.edges, []
            backward.arrived = [None] * len(outputs)
            for index, (tensor, edge) in enumerate(zip(outputs, edges, strict=True)):
                if edge is not None:
                    handed_on = [number for number, behind in enumerate(inputs) if behind == edge]
                    self._handles.append(TensorHook(tensor, _Arrival(self._session, backward, index, handed_on)))
            self._watch_shares(backward, inputs, edges)

    def takes(self, backward: Backward) -> bool:
        """Whether this backward, to which something has just arrived, is recorded."""
        if backward.is_taken is None:
            store = self._session.store
            backward.is_taken = store.selection.begin_backward(backward.call) and store.admits(backward.call.backward)
            if backward.is_taken:
                store.add_backward(backward)
        return backward.is_taken

    def finish_after_pass(self, share: Share, graph_pass: int) -> None:
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

    def _watch_shares(self, backward: Backward, inputs: Sequence[Edge | None], outputs: Sequence[Edge | None]) -> None:
        shares: dict[Edge, Share] = {}
        for number, edge in enumerate(inputs):
            if edge is not None and edge not in outputs:
                shares.setdefault(edge, Share(self._session, backward)).inputs.append(number)
        if not shares:
            return
        backward.shares = len(shares)
        # An edge that is handed on ends the walk too: what lies behind it is not the call's.
        ends = {edge for edge in inputs if edge is not None}
        for node, passes in nodes_that_pass_on(outputs, ends, shares, backward.since):
            for _, share in passes:
                share.parts += 1
            self._handles.append(node.register_hook(Passing(self._session, passes)))


class _Arrival(FirstGradientHook):
    """The hook of one output."""

    def __init__(self, session: Session, backward: Backward, index: int, handed_on: Sequence[int]) -> None:
        super().__init__(session)
        self._backward = backward
        self._index = index
        self._handed_on = handed_on

    def _take(self, gradient: Tensor) -> None:
        self._session.nesting.flowing = self._backward.call.during
        if self._session.gradients.takes(self._backward):
            self._record(gradient)
        if self._backward.shares == 0:
            self._session.store.selection.end_backward(self._backward.call)

    def _record(self, gradient: Tensor) -> None:
        backward, wanted, recorder = self._backward, self._session.wanted, self._session.store.recorder
        entry = backward.call.backward
        with recorder.recording():
            if wanted.inputs:
                backward.arrived[self._index] = recorder.arrived(entry, self._index, gradient)
            for number in self._handed_on if wanted.outputs else ():
                backward.passed_on[number] = recorder.passed_on(entry, number, gradient)
