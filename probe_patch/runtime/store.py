"""What one dump has collected: entries, parents, call stacks and the rows of their numbers.

One store is one phase of one step of one process. It knows nothing of modules, hooks or files.
"""

import threading
from typing import TYPE_CHECKING, Final

from probe_patch.runtime.capture.names import forward_entry
from probe_patch.runtime.capture.nesting import ModuleCall
from probe_patch.runtime.capture.records import Recorder
from probe_patch.runtime.capture.stacks import CallStacks
from probe_patch.runtime.documents import entry_line
from probe_patch.runtime.problems import Problems
from probe_patch.runtime.stats.apart import apart_from_the_run
from probe_patch.runtime.stats.table import Readings, StatisticsTable

if TYPE_CHECKING:
    from probe_patch.runtime.capture.forms import Record


_EMPTY_RECORD: Final[dict[str, "Record"]] = {"input_args": [], "input_kwargs": {}, "output": []}


class Store:
    """Calls are opened and closed by hooks on any thread; ``flush`` turns what is complete into lines of JSON.

    Attributes:
        lock: held by whoever records or flushes, so that nothing is read while it is being written.
        recomputed: module forwards that were left out because they ran inside a backward pass.
    """

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self.lock = threading.RLock()
        self.recomputed = 0
        self.stacks = CallStacks()
        self.parents: dict[str, str | None] = {}
        self.lines: list[str] = []
        self._table = StatisticsTable()
        self.recorder = Recorder(self._table, problems)
        self._calls: dict[str, int] = {}
        self._open: dict[str, ModuleCall] = {}
        self._finished: list[tuple[str, dict[str, Record]]] = []

    @property
    def entries(self) -> int:
        """How many entries the flushed lines hold."""
        return len(self.lines)

    def open_call(self, label: str, parent: str | None, handled: BaseException | None) -> ModuleCall:
        """Begin the next forward of a module: its counter, its parent, its call stack. The caller holds ``lock``."""
        count = self._calls.get(label, 0)
        self._calls[label] = count + 1
        call = ModuleCall(label, forward_entry(label, count), handled)
        self._open[call.entry] = call
        self.parents[call.entry] = parent
        self.stacks.add(call.entry)
        return call

    def close_call(self, call: ModuleCall) -> None:
        """The call's record is complete, as far as it will ever be. The caller holds ``lock``."""
        if self._open.pop(call.entry, None) is not None:
            self._finished.append((call.entry, call.record))

    def flush(self) -> None:
        """Read the numbers and add a line per finished call; calls still open are written as far as they came."""
        with self.lock:
            finished = self._finished + [(call.entry, call.record) for call in self._open.values()]
            self._finished = []
            self._open = {}
            readings = self._readings()
            self.lines += [self._line(entry, record, readings) for entry, record in finished]

    def _line(self, entry: str, record: "dict[str, Record]", readings: Readings | None) -> str:
        try:
            return entry_line(entry, record, readings)
        except Exception as error:
            self.problems.note("encoding an entry", error)
            return entry_line(entry, _EMPTY_RECORD, None)

    def _readings(self) -> Readings | None:
        try:
            with apart_from_the_run():
                return self._table.read()
        except Exception as error:
            self.problems.note("reading the statistics", error)
            return None
