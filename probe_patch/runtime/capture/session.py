"""One stretch of recording into a store, from a start to its stop."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet, ref

from torch._C import _current_graph_task_id

from probe_patch.runtime.capture.frames import outside
from probe_patch.runtime.capture.nesting import Nesting, Nestings
from probe_patch.runtime.stats.apart import ApartFromTheRun

if TYPE_CHECKING:
    from types import FrameType

    from torch import nn

    from probe_patch.runtime.capture.forwards import Call
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
        dictionaries_stay: whether tensors keep the dictionary of hooks that they were given, once it is empty.
        may_meet_again: whether a tensor may be recorded of a module and of the function that the module is made of.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.wanted = store.wanted
        self.takes_inputs, self.takes_outputs = self.wanted.inputs, self.wanted.outputs
        self.takes_backward = self.wanted.backward
        self._lock = store.lock
        # Compiled, modules that declare each other's classes cannot need each other to be imported.
        from probe_patch.runtime.capture.gradients import Gradients
        from probe_patch.runtime.capture.recomputed import Recomputations

        self.gradients = Gradients(store)
        self.recomputations = Recomputations()
        self.is_open = True
        self.is_paused = False
        self.dictionaries_stay = False
        self.may_meet_again = self.wanted.modules and self.wanted.functions is not None
        # Deeper than one where a value runs its owner's code while it is recorded, and that a module.
        self._depth = 0
        self._apart: list[ApartFromTheRun] = []
        self._passes: list[list[FrameType]] = []
        self._nestings = Nestings(ref(self), self._passes)
        self.threads: ModeOnThreads | None = None
        self._pid = os.getpid()
        _sessions.add(self)

    def here(self) -> Nesting:
        """What is open on the current thread."""
        return self._nestings.here

    def enter(self) -> bool:
        """Begin to record, which ends with ``leave``; False, without the lock, where nothing is to be recorded.

        In between, records may be made, and no mode of the run's is on; see ``ran_with_gradients``.
        """
        if not self.is_open:
            return False
        if self.is_paused and _current_graph_task_id() == -1:
            return False
        if not self._lock.take() and not self._wait():
            return False
        if not self.is_open:
            self._lock.give_back()
            return False
        if self._depth == len(self._apart):
            self._apart.append(ApartFromTheRun())
        apart = self._apart[self._depth]
        apart.begin()
        self._depth += 1
        return True

    def leave(self) -> None:
        """What was recorded of values is taken, and the lock given back."""
        store = self.store
        recorder = store.recorder
        recorder.known = None
        try:
            recorder.launch()
            if store.due() and self._depth == 1:
                self._relieve()
        finally:
            self._depth -= 1
            ending = self._apart[self._depth]
            ending.end()
            self._lock.give_back()

    def _wait(self) -> bool:
        """Wait for the lock while another thread has it."""
        store = self.store
        while not self._lock.wait(PATIENCE):
            if not store.is_relieved_now:
                store.problems.note("recording", "another thread was held up in its own recording for too long")
                return False
        return True

    def _relieve(self) -> None:
        # The store has told of what fails.
        with suppress(Exception):
            self.store.relieve(partial(self.gradients.awaited, self))

    @property
    def ran_with_gradients(self) -> bool:
        """Whether gradients were enabled where this session was entered."""
        return self.ran_with()

    def ran_with(self) -> bool:
        latest = self._apart[self._depth - 1]
        return latest.had_gradients

    @property
    def ran_in_inference_mode(self) -> bool:
        """Whether inference mode was on where this session was entered."""
        return self._apart[self._depth - 1].was_in_inference_mode

    def close(self) -> None:
        """Returns once no hook is recording; from then on none does."""
        if os.getpid() == self._pid:
            with self.store.lock:
                self.is_open = False
        self.is_open = False
        for running in tuple(self._passes):
            running.clear()

    def visit_thread(self, nesting: Nesting) -> None:
        """A module is about to run on this thread: its functions are recorded here too."""
        threads = self.threads
        if threads is not None and not nesting.has_mode:
            threads.visit(nesting)

    def leave_thread(self, nesting: Nesting) -> None:
        """A module has ended on this thread, maybe the outermost."""
        if nesting.is_visited and not nesting.is_in_a_module() and self.threads is not None:
            self.threads.leave(nesting)

    def enter_pass(self, root: ModuleName) -> None:
        """A root of the model begins, maybe inside another one."""
        if not self.enter_visit() or not self.enter():
            return
        try:
            self.begin_pass(root)
        finally:
            self.leave()

    def enter_visit(self) -> bool:
        """A module that is not recorded itself begins. Whether nothing else of the model is running on this thread."""
        nesting = self.here()
        self.visit_thread(nesting)
        # Frames are let go of when the session is closed, once.
        return self.is_open and nesting.enter_pass(outside())

    def leave_visit(self) -> None:
        """A root of the model, or a module that is not recorded, is over."""
        nesting = self.here()
        nesting.leave_pass()
        self.leave_thread(nesting)

    def begin_pass(self, root: ModuleName) -> None:
        """An outermost pass through this root begins on this thread."""
        self.here().latest = self.store.begin_pass(root, self.ran_with_gradients)

    def open_module(self, name: ModuleName, handled: BaseException | None) -> Call:
        """Begin the next forward of a module on this thread, inside the innermost open one."""
        nesting = self.here()
        self.visit_thread(nesting)
        nesting.unchanged = None
        call = self.store.open_call(name, nesting.innermost(), nesting.latest or self.store.latest, handled)
        nesting.enter(call)
        return call

    def open_function(self, here: Nesting, name: FunctionName) -> Call:
        """Begin the next forward of a function on this thread."""
        return self.store.open_call(name, here.innermost(), here.latest or self.store.latest, None)

    def take_inputs(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Record what a call is about to be given, and get ready for what flows back."""
        self.record_inputs(call, args, kwargs)
        if self.takes_backward and self.store.selection.may_take_backward(call):
            call.flow = self.gradients.before(self, call, args)

    def take_output(self, call: Call, output: object) -> None:
        """Record what a call has given, and watch what flows back."""
        if call.flow is not None:
            self.gradients.after(self, call.flow, output)
        self.record_output(call, output)

    def record_inputs(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Record the values that a call is about to be given."""
        if call.is_taken and self.takes_inputs:
            recorder = self.store.recorder
            call.input_args = recorder.arguments(call, args)
            call.input_kwargs = recorder.keywords(call, kwargs)

    def record_output(self, call: Call, output: object) -> None:
        """Record the values that a call has given."""
        if call.is_taken and self.takes_outputs:
            call.output = self.store.recorder.output(call, output)

    def take_parameters(self, call: Call, module: nn.Module) -> None:
        """Record a module's own parameters."""
        if call.is_taken and self.takes_outputs:
            call.parameters = self.store.recorder.parameters(call, module)


def _end_in_a_child() -> None:
    for session in _sessions:
        session.is_open = False


_sessions: Final[WeakSet[Session]] = WeakSet()
os.register_at_fork(after_in_child=_end_in_a_child)
