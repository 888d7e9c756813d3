"""One stretch of recording into a store, from a start to its stop."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, Final

import torch

from probe_patch.runtime.capture.gradients import Gradients
from probe_patch.runtime.capture.nesting import Call, Nesting
from probe_patch.runtime.capture.recomputed import Recomputations
from probe_patch.runtime.stats.apart import apart_from_the_run

if TYPE_CHECKING:
    from torch import nn

    from probe_patch.runtime.capture.names import FunctionName, ModuleName
    from probe_patch.runtime.store import Store


PATIENCE: Final = 1.0
"""Seconds a hook waits for another thread's. Values can run their owner's code while they are recorded; if that waits
for this thread in turn, something must give way, and it is the recording."""


_ELSEWHERE: Final = (
    "modules ran on another thread than the one that started the recording; functions are recorded on that one only"
)


class Session:
    """What the hooks of one start share. Hooks hold ``store.lock`` while they record, and record only while it is open.

    Another thread may be about to call a hook that was just removed; it then finds the session closed. A forked child
    has the hooks too, but not the threads that may hold the lock, and records nothing.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.wanted = store.wanted
        self.gradients = Gradients(self)
        self.recomputations = Recomputations(self)
        self.nesting = Nesting()
        self.is_open = True
        self._pid = os.getpid()
        self._thread = threading.get_ident()

    def enter(self) -> bool:
        """Take the lock, to be given back with ``leave``; False, without the lock, where nothing is to be recorded."""
        if not self.is_open or os.getpid() != self._pid:
            return False
        if not self.store.lock.acquire(timeout=PATIENCE):
            self.store.problems.note("recording", "another thread was held up in its own recording for too long")
            return False
        if not self.is_open:
            self.leave()
            return False
        return True

    def leave(self) -> None:
        self.store.lock.release()

    def close(self) -> None:
        """Returns once no hook is recording; from then on none does."""
        if os.getpid() == self._pid:
            with self.store.lock:
                self.is_open = False
        self.is_open = False

    def begin_pass(self, root: ModuleName) -> None:
        """An outermost pass through this root begins on this thread."""
        self.nesting.latest = self.store.begin_pass(root, torch.is_grad_enabled())

    def open_module(self, name: ModuleName, handled: BaseException | None) -> Call:
        """Begin the next forward of a module on this thread, inside the innermost open one."""
        if self.wanted.functions is not None and threading.get_ident() != self._thread:
            self.store.problems.note("recording functions", _ELSEWHERE)
        nesting = self.nesting
        call = self.store.open_call(name, nesting.innermost(), nesting.latest or self.store.latest, handled)
        nesting.enter(call)
        return call

    def open_function(self, name: FunctionName) -> Call:
        """Begin the next forward of a function on this thread."""
        nesting = self.nesting
        return self.store.open_call(name, nesting.innermost(), nesting.latest or self.store.latest, None)

    def take_inputs(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Record what a call is about to be given."""
        if call.is_taken and self.wanted.inputs:
            with apart_from_the_run():
                call.record["input_args"] = self.store.recorder.arguments(call.entry, args)
                call.record["input_kwargs"] = self.store.recorder.keywords(call.entry, kwargs)
        if self.wanted.backward and self.store.selection.may_take_backward(call):
            call.flow = self.gradients.before(call, args)

    def take_output(self, call: Call, output: object) -> None:
        """Record what a call has given."""
        if call.flow is not None:
            self.gradients.after(call.flow, output)
        if call.is_taken and self.wanted.outputs:
            with apart_from_the_run():
                call.record["output"] = self.store.recorder.output(call.entry, output)

    def take_parameters(self, call: Call, module: nn.Module) -> None:
        """Record a module's own parameters."""
        if call.is_taken and self.wanted.outputs:
            with apart_from_the_run():
                call.record["parameters"] = self.store.recorder.parameters(call.entry, module)
