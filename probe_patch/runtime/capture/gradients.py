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
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import Tensor

from probe_patch.runtime.capture.arrivals import Arrival, Awaited
from probe_patch.runtime.capture.backward import Backward, Edge, edge_of
from probe_patch.runtime.capture.nested import tensors_in
from probe_patch.runtime.capture.shares import Share, nodes_that_pass_on, passing_of, watch
from probe_patch.runtime.capture.tensor_hooks import latest_hook

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch.utils.hooks import RemovableHandle

    from probe_patch.runtime.capture.nesting import Call
    from probe_patch.runtime.capture.session import Session

_get_level: Final = torch._C._functorch.maybe_current_level


class Gradients:
    """The gradient hooks of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._handles: list[RemovableHandle | Arrival] = []
        self._unfinished: dict[int, list[Share]] = {}

    def before(self, call: Call, args: tuple[Any, ...]) -> Backward | None:
        """Look at the inputs, which the call may overwrite. None where nothing can flow back, or not as itself."""
        if not self._session.ran_with_gradients or _get_level() is not None:
            return None
        # Nothing is computed, only looked at; but a torch function mode would see even that.
        return Backward(call, tensors_in(args))

    def after(self, backward: Backward, output: object) -> None:
        """Hook what the call has made."""
        outputs = [output] if isinstance(output, Tensor) else _parts(output)
        inputs, backward.edges = backward.edges, []
        backward.arrived = [None] * len(outputs)
        edges: list[Edge] = []
        for index, tensor in enumerate(outputs):
            if tensor.requires_grad:
                edge = edge_of(tensor)
                edges.append(edge)
                is_handed_on = edge in inputs
                handed_on = [i for i, behind in enumerate(inputs) if behind == edge] if is_handed_on else ()
                self._await(tensor, Awaited(backward, index, handed_on))
        if edges and backward.passed_on:
            self._watch_shares(backward, inputs, edges)
        # Only now are all identities of leaves used up.
        backward.leaves = []

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

    def awaited(self) -> set[Backward]:
        """The backwards to which something may still flow. Hooks of what is gone from the graph are forgotten.

        The caller holds ``store.lock``.
        """
        found: set[Backward] = set()
        handles: list[RemovableHandle | Arrival] = []
        for handle in self._handles:
            hook = handle.if_on() if isinstance(handle, Arrival) else passing_of(handle)
            if hook is not None:
                found.update(hook.backwards)
                handles.append(handle)
        self._handles = handles
        return found

    def remove(self) -> None:
        """Take the hooks off; of a pass that is still running or has failed, shares that are not whole are left out."""
        self._unfinished = {}
        handles, self._handles = self._handles, []
        # Hands are laid on tensors, which a torch function mode of the run's would see.
        with torch._C.DisableTorchFunction():
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

    def _await(self, tensor: Tensor, awaited: Awaited) -> None:
        """Take the next gradient that arrives at the tensor; with others who await it, where it comes to all alike."""
        latest = latest_hook(tensor)
        if type(latest) is Arrival and latest.join(self._session, awaited):
            return
        arrival = Arrival(self._session, awaited)
        arrival.put_on(tensor)
        self._handles.append(arrival)

    def _watch_shares(self, backward: Backward, inputs: Sequence[Edge | None], outputs: Sequence[Edge]) -> None:
        # An edge that is handed on ends the walk too: what lies behind it is not the call's.
        ends: dict[Edge, Share | None] = {}
        for number, edge in enumerate(inputs):
            if edge is None:
                continue
            if edge in ends:
                share = ends[edge]
                if share is not None:
                    share.inputs.append(number)
            elif edge in outputs:
                ends[edge] = None
            else:
                ends[edge] = Share(self._session, backward, number)
                backward.shares += 1
        if backward.shares == 0:
            return
        for node, shares in nodes_that_pass_on(outputs, ends, backward.since):
            handle = watch(self._session, node, shares)
            if handle is not None:
                self._handles.append(handle)


def _parts(output: object) -> list[Tensor]:
    return tensors_in(output if isinstance(output, tuple) else (output,))
