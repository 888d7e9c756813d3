"""What one dump has collected: entries, parents, call stacks and the rows of their numbers.

One store is one phase of one step of one process. It knows nothing of modules, hooks or files.
"""

from __future__ import annotations

import threading
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from probe_patch.runtime.capture.contents import Statistics
from probe_patch.runtime.capture.forms import WrittenRecord
from probe_patch.runtime.capture.names import ModuleName
from probe_patch.runtime.capture.nesting import BEFORE_ANY_PASS, Call, ForwardPass
from probe_patch.runtime.capture.records import Recorder
from probe_patch.runtime.capture.stacks import CallStacks
from probe_patch.runtime.documents import entry_line, record_text
from probe_patch.runtime.json_text import BARE, JsonStyle
from probe_patch.runtime.lines import Lines
from probe_patch.runtime.stats.apart import ApartFromTheRun
from probe_patch.runtime.stats.streams import is_captured

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from pathlib import Path

    from probe_patch.runtime.capture.backward import Backward
    from probe_patch.runtime.capture.forms import Record, TensorTexts
    from probe_patch.runtime.capture.names import CallName
    from probe_patch.runtime.capture.selection import Selection
    from probe_patch.runtime.capture.wanted import Wanted
    from probe_patch.runtime.nan_check import NanCheck
    from probe_patch.runtime.problems import Problems


AT_ONCE: Final = 50_000
"""How many tensors and calls are recorded before those that are complete are turned into lines: some tens of MiB, and
one read from the device."""

_EMPTY_RECORD: Final[dict[str, Record]] = {"input_args": [], "input_kwargs": {}, "output": []}


class Enclosure(NamedTuple):
    """An entry, the entry of what is around it, and its micro-batch, counted from 0; a backward has its forward's."""

    entry: str
    parent: str | None
    micro_batch: int


class Store:
    """Calls are opened and closed by hooks on any thread; at the stop, ``flush`` turns them into lines of JSON, and
    before, ``relieve`` those that are complete.

    Args:
        recorder: makes the records; statistics by default.
        most_entries: how many entries are recorded; None for all.
        style: how records are written.
        nan_check: where given, only what it keeps is written.
        folder: where lines go that are too many for the memory; None keeps all of them there.

    Attributes:
        lock: held by whoever records or flushes, so that nothing is read while it is being written.
        recomputed: module forwards that were left out because they ran inside a backward pass.
        latest: the last outermost pass through a root that began.
        lines: the entries that were flushed.
        is_relieved_now: whether ``relieve`` is at work. Nobody it would wait for can be waiting for it.
        saved: records of what was saved by name, by entry, and of their gradients, as far as these have arrived.
    """

    def __init__(
        self,
        problems: Problems,
        wanted: Wanted,
        selection: Selection,
        recorder: Recorder | None = None,
        most_entries: int | None = None,
        style: JsonStyle = BARE,
        nan_check: NanCheck | None = None,
        folder: Path | None = None,
    ) -> None:
        self.problems = problems
        self.wanted = wanted
        self.selection = selection
        self.lock = threading.RLock()
        self.recomputed = 0
        self.latest = BEFORE_ANY_PASS
        self.saved: dict[str, Record] = {}
        self._stacks = CallStacks()
        self.lines = Lines(folder, problems)
        self.is_relieved_now = False
        # Of a flush that was cut short, by the run's Ctrl-C as it may be.
        self._unwritten: Iterator[str] = iter(())
        self._flushed = 0
        self.recorder = recorder or Recorder(Statistics(problems), problems)
        self._most_entries = most_entries
        self._style = style
        self._nan_check = nan_check
        self._due = AT_ONCE
        self._admitted: set[str] = set()
        self._counts: dict[str, int] = {}
        self._passes: dict[ModuleName, int] = {}
        self._begun: list[Call] = []
        self._dropped: set[str] = set()
        self._open: dict[Call, None] = {}
        self._backwards: dict[Call, Backward] = {}
        self._parameter_gradients: dict[str, dict[str, Record]] = {}
        self._whole: set[str] = set()
        self._firings: dict[tuple[str, str], int] = {}
        self._finished: list[Call] = []

    def stack_groups(self) -> Iterator[tuple[list[str], tuple[str, ...]]]:
        """The entries that share a call stack, and its frames; see ``CallStacks``."""
        for calls, frames in self._stacks.groups():
            entries = [call.entry for call in calls]
            if self._dropped:
                entries = [entry for entry in entries if entry not in self._dropped]
            if entries:
                yield entries, frames

    @property
    def entries(self) -> int:
        """How many entries were flushed."""
        return self._flushed

    @property
    def saw_a_module(self) -> bool:
        """Whether a module ran, be it recorded or not."""
        return any(isinstance(call.name, ModuleName) for call in self._begun)

    @property
    def saw_a_call(self) -> bool:
        """Whether anything ran, be it recorded or not."""
        return bool(self._begun)

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
        self, name: CallName, parent: Call | None, during: ForwardPass, handled: BaseException | None
    ) -> Call:
        """Begin the next forward: its number, its parent, its call stack. The caller holds ``lock``."""
        label = name.label
        number = self._counts.get(label, 0)
        self._counts[label] = number + 1
        call = Call(name, number, parent, during, handled)
        self._begun.append(call)
        if (
            self.selection.begin(call)
            and self.wanted.forward
            and (self._most_entries is None or self.admits(call.entry))
        ):
            self._open[call] = None
            self._stacks.add(call)
        else:
            call.is_taken = False
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
        call.end()
        if call in self._open:
            del self._open[call]
            self._finished.append(call)

    def add_backward(self, backward: Backward) -> None:
        """A gradient of this call has arrived. The caller holds ``lock``."""
        call = backward.call
        if not call.has_backward:
            self._backwards[call] = backward
            call.has_backward = True

    def parameters_gradient(self, module: ModuleName, parameter: str) -> str:
        """The entry of this backward pass through a parameter. The caller holds ``lock``."""
        key = module.label, parameter
        firing = self._firings.get(key, 0)
        self._firings[key] = firing + 1
        return module.parameters_gradient(firing)

    def add_parameter_gradient(self, entry: str, parameter: str, gradient: Record, of: int) -> None:
        """One parameter's gradient of one backward pass, out of so many. The caller holds ``lock``."""
        gradients = self._parameter_gradients.setdefault(entry, {})
        gradients[parameter] = [gradient]
        if len(gradients) == of:
            self._whole.add(entry)

    def enclosures(self) -> Iterator[Enclosure]:
        """What is recorded, and the modules around that."""
        dropped = self._dropped
        named: dict[Call, str] = {}
        for call in self._begun:
            if call.is_taken and not (dropped and call.entry in dropped):
                around: Call | None = call
                while around is not None and around not in named:
                    named[around] = around.entry
                    around = around.parent
        around_backwards: dict[Call, str] = {}
        for call in self._begun:
            during = call.during.micro_batch
            entry = named.get(call)
            if entry is not None:
                yield Enclosure(entry, None if call.parent is None else named[call.parent], during)
            if call.has_backward:
                backward = call.backward
                if not (dropped and backward in dropped):
                    yield Enclosure(backward, self._enclosing_backward(call, around_backwards), during)

    def parents(self) -> dict[str, str | None]:
        """The parents of what is recorded, and of what is around that."""
        return {entry: parent for entry, parent, _ in self.enclosures()}

    def flush(self) -> None:
        """Read the numbers and add a line per finished call; calls still open are written as far as they came."""
        with self.lock:
            finished: list[tuple[str, Record]] = [(call.entry, call.give_record()) for call in self._finished]
            finished += [(call.entry, call.give_record()) for call in self._open]
            finished += [(call.backward, backward.record(self.wanted)) for call, backward in self._backwards.items()]
            finished += list(self._parameter_gradients.items())
            finished += list(self.saved.items())
            self._finished = []
            self._open = {}
            self._backwards = {}
            self._parameter_gradients = {}
            self._whole = set()
            self.saved = {}
            self._finish_files()
            tensors = self._read()
            self._flushed += len(finished)
            if self._nan_check is not None:
                finished = self._kept(self._nan_check, finished, tensors)
            self._write(finished, tensors)

    @property
    def is_due(self) -> bool:
        """Whether so much has been recorded since the last read that ``relieve`` is to be called."""
        return self.due()

    def due(self) -> bool:
        return len(self.recorder.looks) + len(self._finished) >= self._due

    def relieve(self, awaited: Callable[[], Collection[Backward]]) -> None:
        """Turn what is complete into lines, so that the memory it takes does not grow with the run.

        What is not complete stays, with the numbers that it has. The task nan_check looks at everything together, and
        files that wait for the stop may still fail: then all stays as it is. The caller holds ``lock``, and no record
        is being made.

        Args:
            awaited: tells the backwards to which something may still flow.
        """
        self._due += AT_ONCE
        if self._nan_check is not None or self.saved or self.recorder.holds_files or is_captured():
            return
        self.is_relieved_now = True
        try:
            finished = self._take_complete(awaited())
            tensors = self._read()
            self._write_parts(lambda record: self._written(record, tensors))
            self._flushed += len(finished)
            self._write(finished, tensors)
        except BaseException as error:
            # What is left may name tensors that were read and are gone.
            self._write_parts(lambda _: None)
            self.problems.note("encoding the dump", error)
            raise
        finally:
            self.is_relieved_now = False

    def _take_complete(self, awaited: Collection[Backward]) -> list[tuple[str, Record]]:
        whole = [call for call, backward in self._backwards.items() if backward not in awaited]
        complete: list[tuple[str, Record]] = [(call.entry, call.give_record()) for call in self._finished]
        complete += [(call.backward, self._backwards.pop(call).record(self.wanted)) for call in whole]
        complete += [(entry, self._parameter_gradients.pop(entry)) for entry in self._whole]
        self._finished = []
        self._whole = set()
        return complete

    def _read(self) -> TensorTexts:
        self._due = AT_ONCE
        with ApartFromTheRun():
            return self.recorder.read(self._style)

    def _write(self, finished: list[tuple[str, Record]], tensors: TensorTexts) -> None:
        if self.wanted.values:
            self._unwritten = chain(self._unwritten, map(partial(self._line, tensors), finished))
            self.lines.add(self._unwritten)
            self._unwritten = iter(())

    def _write_parts(self, write: Callable[[Record], Record]) -> None:
        """Put what ``write`` makes of them in the place of the parts of what is still incomplete."""
        for record in chain((call.record for call in self._open), self._parameter_gradients.values()):
            for key, part in record.items():
                if type(part) is not WrittenRecord:
                    record[key] = write(part)
        for backward in self._backwards.values():
            for parts in (backward.arrived, backward.passed_on):
                for place, part in enumerate(parts):
                    if part is not None and type(part) is not WrittenRecord:
                        parts[place] = write(part)

    def _written(self, record: Record, tensors: TensorTexts) -> Record:
        try:
            return WrittenRecord(record_text(record, tensors, self._style))
        except Exception as error:
            self.problems.note("encoding an entry", error)
            return None

    def _kept(
        self, nan_check: NanCheck, finished: list[tuple[str, Record]], tensors: TensorTexts
    ) -> list[tuple[str, Record]]:
        kept = nan_check.keep(finished, tensors, self.parents().get)
        self._dropped |= {entry for entry, _ in finished} - {entry for entry, _ in kept}
        return kept

    def _finish_files(self) -> None:
        try:
            with ApartFromTheRun():
                self.recorder.finish()
        except Exception as error:
            self.problems.note("saving tensors", error)

    def _enclosing_backward(self, call: Call, names: dict[Call, str]) -> str | None:
        """Of the innermost module around the call through which something flowed back too; ``names`` fills up."""
        around = call.parent
        while around is not None:
            if around.has_backward:
                name = names.get(around)
                if name is None:
                    name = names[around] = around.backward
                if not (self._dropped and name in self._dropped):
                    return name
            around = around.parent
        return None

    def _line(self, tensors: TensorTexts, finished: tuple[str, Record]) -> str:
        entry, record = finished
        try:
            return entry_line(entry, record, tensors, self._style)
        except Exception as error:
            self.problems.note("encoding an entry", error)
            return entry_line(entry, _EMPTY_RECORD, tensors)
