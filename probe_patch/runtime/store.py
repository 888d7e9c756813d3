"""What one dump has collected: entries, parents, call stacks and the rows of their numbers.

One store is one phase of one step of one process. It knows nothing of modules, hooks or files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from probe_patch.runtime.batch import Batch
from probe_patch.runtime.capture.contents import Statistics
from probe_patch.runtime.capture.forms import WrittenRecord
from probe_patch.runtime.capture.forwards import BEFORE_ANY_PASS, Call, ForwardPass
from probe_patch.runtime.capture.names import ModuleName
from probe_patch.runtime.capture.records import Recorder
from probe_patch.runtime.capture.stacks import CallStacks
from probe_patch.runtime.enclosures import Enclosures, Parents
from probe_patch.runtime.hook_lock import HookLock
from probe_patch.runtime.json_text import BARE, JsonStyle
from probe_patch.runtime.lines import Lines
from probe_patch.runtime.record_text import record_text
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
        self._takes_forward = wanted.forward
        self.lock = HookLock()
        self.recomputed = 0
        self.latest = BEFORE_ANY_PASS
        self.saved: dict[str, Record] = {}
        self._stacks = CallStacks()
        self.lines = Lines(folder, problems)
        self.is_relieved_now = False
        # Of a flush that was cut short, by the run's Ctrl-C as it may be.
        self._unwritten: list[Batch] = []
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

    def stack_groups(self) -> Iterator[tuple[list[Call], tuple[str, ...]]]:
        """The calls that share a call stack, and its frames; see ``CallStacks``."""
        for calls, frames in self._stacks.groups():
            kept = [call for call in calls if call.entry not in self._dropped] if self._dropped else calls
            if kept:
                yield kept, frames

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
            and self._takes_forward
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

    @property
    def calls(self) -> int:
        """How many have begun, be they recorded or not."""
        return len(self._begun)

    def enclosures(self) -> Enclosures:
        """What stands around what, by the numbers of ``calls``."""
        return Enclosures(self._begun, self._dropped)

    def parents(self) -> dict[str, str | None]:
        """The parents of what is recorded, and of what is around that."""
        parents = Parents()
        self.enclosures().tell(parents, 0, self.calls)
        return parents.found

    def flush(self) -> None:
        """Read the numbers and add a line per finished call; calls still open are written as far as they came."""
        with self.lock:
            calls, backwards = [*self._finished, *self._open], list(self._backwards.values())
            others = [*self._parameter_gradients.items(), *self.saved.items()]
            self._finished = []
            self._open = {}
            self._backwards = {}
            # Of those that have not ended, which nothing flows back through any more.
            for call in self._begun:
                call.end()
            self._parameter_gradients = {}
            self._whole = set()
            self.saved = {}
            self._finish_files()
            tensors = self._read()
            self._flushed += len(calls) + len(backwards) + len(others)
            if self._nan_check is not None:
                others = self._kept(self._nan_check, calls, backwards, others, tensors)
                calls, backwards = [], []
            self._write(Batch(calls, backwards, others, tensors))

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
            still = awaited()
            whole = [backward for backward in self._backwards.values() if backward not in still]
            for backward in whole:
                del self._backwards[backward.call]
            calls, others = self._finished, [(entry, self._parameter_gradients.pop(entry)) for entry in self._whole]
            self._finished = []
            self._whole = set()
            self._flushed += len(calls) + len(whole) + len(others)
            tensors = self._read()
            self._write_parts(lambda record: self._written(record, tensors))
            self._write(Batch(calls, whole, [*others], tensors))
        except BaseException as error:
            # What is left may name tensors that were read and are gone.
            self._write_parts(lambda _: None)
            self.problems.note("encoding the dump", error)
            raise
        finally:
            self.is_relieved_now = False

    def _read(self) -> TensorTexts:
        self._due = AT_ONCE
        with ApartFromTheRun():
            return self.recorder.read(self._style)

    def _write(self, batch: Batch) -> None:
        if not self.wanted.values:
            batch.drop()
            return
        self._unwritten.append(batch)
        while self._unwritten:
            first = self._unwritten[0]
            first.write(self.lines, self.wanted, self._style, self.problems)
            del self._unwritten[0]

    def _write_parts(self, write: Callable[[Record], Record]) -> None:
        """Put what ``write`` makes of them in the place of the parts of what is still incomplete."""
        for call in self._open:
            call.write(write)
        for record in self._parameter_gradients.values():
            for key, part in record.items():
                if type(part) is not WrittenRecord:
                    record[key] = write(part)
        for backward in self._backwards.values():
            for place, part in enumerate(backward.gradients):
                if part is not None and type(part) is not WrittenRecord:
                    backward.gradients[place] = write(part)

    def _written(self, record: Record, tensors: TensorTexts) -> Record:
        try:
            return WrittenRecord(record_text(record, tensors, self._style))
        except Exception as error:
            self.problems.note("encoding an entry", error)
            return None

    def _kept(
        self,
        nan_check: NanCheck,
        calls: list[Call],
        backwards: list[Backward],
        others: list[tuple[str, Record]],
        tensors: TensorTexts,
    ) -> list[tuple[str, Record]]:
        finished: list[tuple[str, Record]] = [(call.entry, call.give_record()) for call in calls]
        finished += [(backward.call.backward, backward.record(self.wanted)) for backward in backwards]
        finished += others
        kept = nan_check.keep(finished, tensors, self.parents().get)
        self._dropped |= {entry for entry, _ in finished} - {entry for entry, _ in kept}
        return kept

    def _finish_files(self) -> None:
        try:
            with ApartFromTheRun():
                self.recorder.finish()
        except Exception as error:
            self.problems.note("saving tensors", error)
