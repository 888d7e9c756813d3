"""One stretch of recording into a store, from a start to its stop."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

import torch

from probe_patch.runtime.capture.gradients import Gradients
from probe_patch.runtime.capture.nesting import Call, Nesting
from probe_patch.runtime.capture.recomputed import Recomputations

if TYPE_CHECKING:
    from torch import nn

    from probe_patch.runtime.capture.functions.threads import ModeOnThreads
    from probe_patch.runtime.capture.names import FunctionName, ModuleName
    from probe_patch.runtime.store import Store


PATIENCE: Final = 1.0
"""Seconds a hook waits for another thread's. Values can run their owner's code while they are recorded; if that waits
for this thread in turn, something must give way, and it is the recording."""


class Session:
    """What the hooks of one start share. Hooks hold ``store.lock`` while they record, and record only while it is open.

    Another thread may be about to call a hook that was just removed; it then finds the session closed. A forked child
    has the hooks too, but not the threads that may hold the lock, and records nothing.

    Attributes:
        is_paused: whether nothing is recorded for now but the gradients of what was.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.wanted = store.wanted
        self.gradients = Gradients(self)
        self.recomputations = Recomputations(self)
        self.is_open = True
        self.is_paused = False
        self.nesting = Nesting(lambda: self.is_open)
        self.threads: ModeOnThreads | None = None
        self._pid = os.getpid()

    def enter(self) -> bool:
        """Take the lock, to be given back with ``leave``; False, without the lock, where nothing is to be recorded."""
        if not self.is_open or os.getpid() != self._pid:
            return False
        if self.is_paused and torch._C._current_graph_task_id() == -1:
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

    def visit_thread(self) -> None:
        """A module is about to run on this thread: its functions are recorded here too."""
        if self.threads is not None:
            self.threads.visit()

    def leave_thread(self) -> None:
        """A module has ended on this thread, maybe the outermost."""
        if self.threads is not None and not self.nesting.is_in_module:
            self.threads.leave()

    def functions_are_recorded_here(self) -> bool:
        """Whether this thread is the one that started the recording, or a module of the model is running on it."""
        return self.threads is not None and self.threads.is_here

    def begin_pass(self, root: ModuleName) -> None:
        """An outermost pass through this root begins on this thread."""
        self.nesting.latest = self.store.begin_pass(root, torch.is_grad_enabled())

    def open_module(self, name: ModuleName, handled: BaseException | None) -> Call:
        """Begin the next forward of a module on this thread, inside the innermost open one."""
        self.visit_thread()
        nesting = self.nesting
        call = self.store.open_call(name, nesting.innermost(), nesting.latest or self.store.latest, handled)
        nesting.enter(call)
        return call

    def open_function(self, name: FunctionName) -> Call:
        """Begin the next forward of a function on this thread."""
        nesting = self.nesting
        return self.store.open_call(name, nesting.innermost(), nesting.latest or self.store.latest, None)

    def take_inputs(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Record what a call is about to be given, and get ready for what flows back."""
        self.record_inputs(call, args, kwargs)
        if self.wanted.backward and self.store.selection.may_take_backward(call):
            call.flow = self.gradients.before(call, args)

    def take_output(self, call: Call, output: object) -> None:
        """Record what a call has given, and watch what flows back."""
        if call.flow is not None:
            self.gradients.after(call.flow, output)
        self.record_output(call, output)

    def record_inputs(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Record the values that a call is about to be given."""
        if call.is_taken and self.wanted.inputs:
            with self.store.recorder.recording():
                call.record["input_args"] = self.store.recorder.arguments(call.entry, args)
                call.record["input_kwargs"] = self.store.recorder.keywords(call.entry, kwargs)

    def record_output(self, call: Call, output: object) -> None:
        """Record the values that a call has given."""
        if call.is_taken and self.wanted.outputs:
            with self.store.recorder.recording():
                call.record["output"] = self.store.recorder.output(call.entry, output)

    def take_parameters(self, call: Call, module: nn.Module) -> None:
        """Record a module's own parameters."""
        if call.is_taken and self.wanted.outputs:
            with self.store.recorder.recording():
                call.record["parameters"] = self.store.recorder.parameters(call.entry, module)
