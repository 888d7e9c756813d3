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
from weakref import ref

import torch
from torch import Tensor

from probe_patch.runtime.capture.arrivals import Arrival, Awaited
from probe_patch.runtime.capture.backward import LEAF, NOTHING, Backward
from probe_patch.runtime.capture.nested import tensors_in
from probe_patch.runtime.capture.shares import Passing, Share, watch
from probe_patch.runtime.capture.tensor_hooks import are_ours, is_backward_running, make_hooks, unmake_hooks
from probe_patch.runtime.capture.walks import nodes_that_pass_on

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from probe_patch.runtime.capture.forwards import Call
    from probe_patch.runtime.capture.session import Session
    from probe_patch.runtime.store import Store

_get_level: Final = torch._C._functorch.maybe_current_level


class Gradients:
    """The gradient hooks of one session, which comes with each call: it refers to them, and in a cycle it would hold
    all that was recorded until Python next looks for cycles, which some runs do by hand.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        # The dictionaries of hooks, of tensors and of nodes, that ours are in, and the tensors that had none before.
        self._hooked: list[ref[Any]] = []
        self._tensors: list[ref[Tensor]] = []
        self._watched = 0
        self._unfinished: dict[int, list[Share]] = {}

    def before(self, session: Session, call: Call, args: tuple[Any, ...]) -> Backward | None:
        """Look at the inputs, which the call may overwrite. None where nothing can flow back, or not as itself."""
        if not session.ran_with() or _get_level() is not None:
            return None
        # Nothing is computed, only looked at; but a torch function mode would see even that.
        return Backward(call, tensors_in(args), self._watched)

    def after(self, session: Session, backward: Backward, output: object) -> None:
        """Hook what the call has made."""
        try:
            self._hook(session, backward, [output] if isinstance(output, Tensor) else _parts(output))
        finally:
            # Only now are all identities of leaves used up.
            backward.behind = backward.numbers = NOTHING

    def begin(self, backward: Backward) -> None:
        """Something has arrived at this backward for the first time: find out whether it is recorded."""
        store, call = self._store, backward.call
        # The name is made in vain where all are admitted.
        if store.selection.begin_backward(call) and (store._most_entries is None or store.admits(call.backward)):
            backward.take()
            store.add_backward(backward)
        else:
            backward.is_taken = False

    def finish_after_pass(self, session: Session, share: Share, graph_pass: int) -> None:
        """Have the share finished when this backward pass is over. In one that fails it never is."""
        waiting = self._unfinished.get(graph_pass)
        if waiting is None:
            waiting = self._unfinished[graph_pass] = []
            engine = torch.autograd.Variable._execution_engine
            engine.queue_callback(partial(self._finish_pass, session, graph_pass))
        waiting.append(share)

    def awaited(self, session: Session) -> set[Backward]:
        """The backwards to which something may still flow. Hooks of what is gone from the graph are forgotten.

        The caller holds ``store.lock``.
        """
        found: set[Backward] = set()
        hooked: list[ref[Any]] = []
        for reference in self._hooked:
            ours = _ours(session, reference())
            if ours:
                hooked.append(reference)
            for _, hook in ours:
                found.update(hook.backwards)
        self._hooked = hooked
        self._tensors = [reference for reference in self._tensors if reference() is not None]
        return found

    def remove(self, session: Session) -> None:
        """Take the hooks off; of a pass that is still running or has failed, shares that are not whole are left out."""
        self._unfinished = {}
        hooked, self._hooked = self._hooked, []
        tensors, self._tensors = self._tensors, []
        # Hands are laid on tensors, which a torch function mode of the run's would see.
        with torch._C.DisableTorchFunction():
            session.dictionaries_stay = is_backward_running()
            for reference in hooked:
                try:
                    hooks = reference()
                    if hooks:
                        _take_off(session, hooks)
                except Exception as error:  # noqa: PERF203
                    self._store.problems.note("removing a hook", error)
            for tensor in () if session.dictionaries_stay else tensors:
                try:
                    unmake_hooks(tensor())
                except Exception as error:  # noqa: PERF203
                    self._store.problems.note("removing a hook", error)

    def _finish_pass(self, session: Session, graph_pass: int) -> None:
        if not session.enter():
            return
        try:
            for share in self._unfinished.pop(graph_pass, []):
                share.finish()
        except Exception as error:
            self._store.problems.note("recording a gradient", error)
        finally:
            session.leave()

    def _hook(self, session: Session, backward: Backward, outputs: list[Tensor]) -> None:
        backward.outputs = len(outputs)
        made: list[Any] = []
        hands_on: list[int] = []
        flows = False
        index = -1
        for tensor in outputs:
            index += 1
            node: Any = tensor.grad_fn
            if node is None and not tensor.requires_grad:
                continue
            flows = True
            number = LEAF if node is None else tensor.output_nr
            handed_on = _places(backward, tensor if node is None else node, number)
            if handed_on:
                hands_on += handed_on
            elif node is not None:
                made.append(node)
            self._await(session, tensor, node, Awaited(backward, index, handed_on))
        if flows and backward.inputs:
            # An edge that is handed on ends the walk too: what lies behind it is not the call's.
            self._watch_shares(session, backward, hands_on, made)

    def _await(self, session: Session, tensor: Tensor, node: Any, awaited: Awaited) -> None:
        """Take the next gradient that arrives at the tensor; with others who await it, where it comes to all alike."""
        hooks: Any = tensor._backward_hooks
        if hooks:
            latest = next(reversed(hooks.values()))
            if type(latest) is Arrival and latest.join(session, awaited):
                return
        if hooks is None:
            hooks = make_hooks(tensor, node)
            self._tensors.append(ref(tensor))
        elif are_ours(hooks):
            self._tensors.append(ref(tensor))
        arrival = Arrival(session, awaited)
        hooks[arrival] = arrival
        self._hooked.append(ref(hooks))

    def _watch_shares(
        self, session: Session, backward: Backward, hands_on: Collection[int], outputs: Sequence[Any]
    ) -> None:
        may_be_watched = self._watched != backward.watched
        for node, parts in nodes_that_pass_on(session, backward, hands_on, outputs):
            hooks = watch(session, node, parts, may_be_watched)
            if hooks is not None:
                self._watched += 1
                self._hooked.append(hooks)


def _take_off(session: Session, hooks: Any) -> None:
    for key, _ in _ours(session, hooks):
        hooks.pop(key, None)


def _ours(session: Session, hooks: Any) -> list[tuple[Any, Arrival | Passing]]:
    """Of a tensor's or a node's hooks, the session's, with their keys; of hooks that are gone there are none."""
    found = []
    for key, hook in list(hooks.items()) if hooks else ():
        if isinstance(hook, Arrival | Passing) and hook.session is session:
            found.append((key, hook))
    return found


def _parts(output: object) -> list[Tensor]:
    return tensors_in(output if isinstance(output, tuple) else (output,))


def _places(backward: Backward, node: Any, number: int) -> Sequence[int]:
    """Which of a call's inputs send their gradients to where one of its outputs does: those that it is as well."""
    found: list[int] | None = None
    place = -1
    for behind in backward.behind:
        place += 1
        if behind is node and backward.numbers[place] == number:
            if found is None:
                found = []
            found.append(place)
    return () if found is None else found
