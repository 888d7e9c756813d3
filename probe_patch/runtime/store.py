"""What one dump has collected: entries, parents, call stacks and the rows of their numbers.

One store is one phase of one step of one process. It knows nothing of modules, hooks or files.
"""

import threading
from typing import TYPE_CHECKING, Final

from probe_patch.runtime.capture.contents import Statistics
from probe_patch.runtime.capture.names import ModuleName
from probe_patch.runtime.capture.nesting import BEFORE_ANY_PASS, Call, ForwardPass
from probe_patch.runtime.capture.records import Recorder
from probe_patch.runtime.capture.selection import Selection
from probe_patch.runtime.capture.stacks import CallStacks
from probe_patch.runtime.capture.wanted import Wanted
from probe_patch.runtime.documents import entry_line
from probe_patch.runtime.json_text import JsonText, bare_tokens
from probe_patch.runtime.nan_check import NanCheck
from probe_patch.runtime.problems import Problems
from probe_patch.runtime.stats.apart import apart_from_the_run
from probe_patch.runtime.stats.rows import Readings

if TYPE_CHECKING:
    from probe_patch.runtime.capture.forms import Record
    from probe_patch.runtime.capture.gradients import Backward
    from probe_patch.runtime.capture.names import CallName


_EMPTY_RECORD: Final[dict[str, "Record"]] = {"input_args": [], "input_kwargs": {}, "output": []}


class Store:
    """Calls are opened and closed by hooks on any thread; ``flush`` turns what is complete into lines of JSON.

    Args:
        recorder: makes the records; statistics by default.
        most_entries: how many entries are recorded; None for all.
        json_text: how records are written.
        nan_check: where given, only what it keeps is written.

    Attributes:
        lock: held by whoever records or flushes, so that nothing is read while it is being written.
        recomputed: module forwards that were left out because they ran inside a backward pass.
        latest: the last outermost pass through a root that began.
        saved: records of what was saved by name, by entry, and of their gradients, as far as these have arrived.
    """

    def __init__(
        self,
        problems: Problems,
        wanted: Wanted,
        selection: Selection,
        recorder: Recorder | None = None,
        most_entries: int | None = None,
        json_text: JsonText = bare_tokens,
        nan_check: NanCheck | None = None,
    ) -> None:
        self.problems = problems
        self.wanted = wanted
        self.selection = selection
        self.lock = threading.RLock()
        self.recomputed = 0
        self.latest = BEFORE_ANY_PASS
        self.saved: dict[str, Record] = {}
        self.stacks = CallStacks()
        self._parents: dict[str, str | None] = {}
        self.lines: list[str] = []
        self._flushed = 0
        self.recorder = recorder or Recorder(Statistics(problems), problems)
        self._most_entries = most_entries
        self._json_text = json_text
        self._nan_check = nan_check
        self._admitted: set[str] = set()
        self._calls: dict[CallName, int] = {}
        self._passes: dict[ModuleName, int] = {}
        self._during: dict[str, ForwardPass] = {}
        self._taken: set[str] = set()
        self._open: dict[str, Call] = {}
        self._backwards: dict[str, Backward] = {}
        self._parameter_gradients: dict[str, dict[str, Record]] = {}
        self._firings: dict[tuple[ModuleName, str], int] = {}
        self._finished: list[tuple[str, dict[str, Record]]] = []

    @property
    def entries(self) -> int:
        """How many entries were flushed."""
        return self._flushed

    @property
    def saw_a_module(self) -> bool:
        """Whether a module ran, be it recorded or not."""
        return any(isinstance(name, ModuleName) for name in self._calls)

    @property
    def saw_a_call(self) -> bool:
        """Whether anything ran, be it recorded or not."""
        return bool(self._calls)

    @property
    def micro_batches(self) -> int:
        """Outermost passes through the root; of several roots, through the one that has most."""
        return max(self._passes.values(), default=0)

    def begin_pass(self, root: ModuleName, has_gradients: bool) -> ForwardPass:
        """An outermost pass through this root begins. The caller holds ``lock``."""
        number = self._passes.get(root, 0)
        self._passes[root] = number + 1
        self.latest = ForwardPass(number, has_gradients)
        return self.latest

    def open_call(
        self, name: "CallName", parent: Call | None, during: ForwardPass, handled: BaseException | None
    ) -> Call:
        """Begin the next forward: its number, its parent, its call stack. The caller holds ``lock``."""
        number = self._calls.get(name, 0)
        self._calls[name] = number + 1
        call = Call(name, number, parent, during, handled)
        call.is_taken = self.selection.begin(call) and self.wanted.forward and self.admits(call.entry)
        self._parents[call.entry] = None if parent is None else parent.entry
        self._during[call.entry] = during
        if call.is_taken:
            self._open[call.entry] = call
            self._taken.add(call.entry)
            self.stacks.add(call.entry)
        return call

    def admits(self, entry: str) -> bool:
        """Whether one more entry may be recorded, or this one already is. The caller holds ``lock``."""
        if self._most_entries is None or entry in self._admitted:
            return True
        if len(self._admitted) == self._most_entries:
            self.problems.note(
                "recording entries", f"limits.entries, {self._most_entries}, is reached; later ones are left out"
            )
            return False
        self._admitted.add(entry)
        return True

    def close_call(self, call: Call) -> None:
        """The call's record is complete, as far as it will ever be. The caller holds ``lock``."""
        self.selection.end(call)
        if self._open.pop(call.entry, None) is not None:
            self._finished.append((call.entry, call.record))

    def add_backward(self, backward: "Backward") -> None:
        """A gradient of this call has arrived. The caller holds ``lock``."""
        call = backward.call
        if call.backward not in self._backwards:
            self._backwards[call.backward] = backward
            self._taken.add(call.backward)
            self._parents[call.backward] = None
            self._during[call.backward] = call.during

    def parameters_gradient(self, module: ModuleName, parameter: str) -> str:
        """The entry of this backward pass through a parameter. The caller holds ``lock``."""
        firing = self._firings.get((module, parameter), 0)
        self._firings[module, parameter] = firing + 1
        return module.parameters_gradient(firing)

    def add_parameter_gradient(self, entry: str, parameter: str, gradient: "Record") -> None:
        """One parameter's gradient of one backward pass. The caller holds ``lock``."""
        self._parameter_gradients.setdefault(entry, {})[parameter] = [gradient]

    def micro_batch(self, entry: str) -> int:
        """Of one of the entries in ``parents``, counted from 0; a backward has its forward's."""
        return self._during[entry].micro_batch

    def parents(self) -> dict[str, str | None]:
        """The parents of what is recorded, and of what is around that."""
        wanted: set[str] = set()
        for entry in self._taken:
            around: str | None = entry
            while around is not None and around not in wanted:
                wanted.add(around)
                around = self._parents[around]
        return {entry: parent for entry, parent in self._parents.items() if entry in wanted}

    def flush(self) -> None:
        """Read the numbers and add a line per finished call; calls still open are written as far as they came."""
        with self.lock:
            for backward in self._backwards.values():
                self._parents[backward.call.backward] = self._enclosing_backward(backward.call)
            finished: list[tuple[str, Record]] = [*self._finished]
            finished += [(call.entry, call.record) for call in self._open.values()]
            finished += [(entry, backward.record(self.wanted)) for entry, backward in self._backwards.items()]
            finished += list(self._parameter_gradients.items())
            finished += list(self.saved.items())
            self._finished = []
            self._open = {}
            self._backwards = {}
            self._parameter_gradients = {}
            self.saved = {}
            self._flushed += len(finished)
            self._finish_files()
            readings = self._readings()
            if self._nan_check is not None:
                finished = self._kept(self._nan_check, finished, readings)
            if self.wanted.values:
                self.lines += [self._line(entry, record, readings) for entry, record in finished]

    def _kept(
        self, nan_check: NanCheck, finished: "list[tuple[str, Record]]", readings: Readings | None
    ) -> "list[tuple[str, Record]]":
        kept = nan_check.keep(finished, readings, self._parents.get)
        dropped = {entry for entry, _ in finished} - {entry for entry, _ in kept}
        self._taken -= dropped
        self.stacks.drop(dropped)
        return kept

    def _finish_files(self) -> None:
        try:
            with apart_from_the_run():
                self.recorder.finish()
        except Exception as error:
            self.problems.note("saving tensors", error)

    def _enclosing_backward(self, call: Call) -> str | None:
        """Of the innermost module around the call through which something flowed back too."""
        around = call.parent
        while around is not None and around.backward not in self._taken:
            around = around.parent
        return None if around is None else around.backward

    def _line(self, entry: str, record: "Record", readings: Readings | None) -> str:
        try:
            return entry_line(entry, record, readings, self._json_text)
        except Exception as error:
            self.problems.note("encoding an entry", error)
            return entry_line(entry, _EMPTY_RECORD, None)

    def _readings(self) -> Readings | None:
        try:
            with apart_from_the_run():
                return self.recorder.read()
        except Exception as error:
            self.problems.note("reading the statistics", error)
            return None
