"""msProbe's starts, stops and steps, as our own ``Service`` has them. The public methods never raise."""

import contextlib
import os
import weakref
from pathlib import Path
from typing import Any, Final

from probe_patch.runtime.capture.names import Model
from probe_patch.runtime.claims import Claim, claim_folder
from probe_patch.runtime.msprobe.settings import MsprobeSettings
from probe_patch.runtime.occasion import Occasion
from probe_patch.runtime.problems import Problems
from probe_patch.runtime.ranks import Identity

_MISSED_STOP: Final = "its stop was not reached, so forwards behind the phase may be in its dump"

_services: Final[weakref.WeakKeyDictionary[Any, "weakref.ref[MsprobeService]"]] = weakref.WeakKeyDictionary()
"""Whose recording msProbe's debugger does, which is one for the process and tells modules apart by name alone."""


class MsprobeService:
    """One dump of msProbe per folder and step.

    msProbe clears its entries and its counters only in ``step``, so what one folder got would be in the next one's
    dump too: here a step of msProbe ends with each folder, and ``set_init_step`` has it give all of them our number.
    """

    def __init__(self, config: MsprobeSettings, debugger: Any) -> None:
        self.config = config
        self._debugger = debugger
        self._step = 0
        self._problems = Problems(set())
        self._running: Path | None = None
        self._held: Path | None = None
        self._ended: set[Path] = set()
        self._claims: dict[Path, Claim] = {}
        self._name: str | None = None
        self._pid = os.getpid()

    @property
    def current_step(self) -> int:
        """How often ``step`` was called."""
        return self._step

    def selects_this_step(self, identity: Identity) -> bool:
        """Whether the step and rank lists take in this process in this step, as msProbe reads them."""
        return self.config.selects(self._step, identity.rank)

    def look_again(self) -> None:
        """Nothing: where config.json has ``dump_enable``, msProbe reads it again by itself."""

    def write_under(self, claim: Claim) -> None:
        """Use this claim, which the caller keeps, for the dump path it is for."""
        self._claims[claim.dump_path] = claim

    def start(self, model: Model | None, identity: Identity, folder: Path, occasion: Occasion) -> None:
        """Record ``model`` into ``folder``/step{N}/rank{R} until ``stop``. Starting what is running changes nothing."""
        if self._is_a_child():
            return
        if self._running is not None:
            if self._running != folder or occasion.ends_by_itself:
                self.note_missed_stop()
            if self._running == folder:
                return
            self.stop(None)
        if not self.selects_this_step(identity):
            if not self.config.selects_rank(identity.rank) and identity.rank is None:
                self.note("choosing ranks", "config.json lists ranks, and msProbe knows none of this process")
            return
        try:
            reason = self._why_not(identity, folder)
            if reason is not None:
                self.note(f"recording into {folder}", reason)
                return
            self._turn_to(folder)
            self._start(model, identity.rank, folder)
            self._running = folder
        except Exception as error:
            self.note("starting msProbe", error)
            # It may have begun all the same, with nowhere to write to.
            with contextlib.suppress(Exception):
                self._debugger.stop()

    def stop(self, ended_by: BaseException | None) -> None:
        """Stop recording and have the files written; an exception that ended it is not in them."""
        if self._running is None or self._is_a_child():
            return
        self._running = None
        try:
            self._debugger.stop()
        except Exception as error:
            self.note("stopping msProbe", error)

    def step(self) -> None:
        """End the step: what runs is stopped, and the next start belongs to the next step."""
        if self._is_a_child():
            return
        self.stop(None)
        try:
            self._end_the_dump()
        except Exception as error:
            self.note("clearing msProbe", error)
        self._ended = set()
        self._step += 1

    def note_missed_stop(self) -> None:
        """If something is still being recorded, say that it went on for too long."""
        if self._running is not None:
            self.note("stopping", _MISSED_STOP)

    def note(self, kind: str, failure: BaseException | str) -> None:
        """Say a failure in the log, once for its kind; there is no meta.json to keep it."""
        self._problems.note(kind, failure)

    def _is_a_child(self) -> bool:
        """A forked child has its parent's entries in memory, and would write them again."""
        return os.getpid() != self._pid

    def _why_not(self, identity: Identity, folder: Path) -> str | None:
        """What keeps msProbe from recording into ``folder``; None if nothing does.

        Raises:
            OSError: the folder cannot be made or claimed.
        """
        if _services.setdefault(self._debugger, weakref.ref(self))() is not self:
            return "msProbe has one debugger in a process, which records another model here"
        self._name = self._name or identity.folder
        if self._name != identity.folder:
            return f"msProbe goes on as {self._name}, and this process has become {identity.folder}"
        if folder not in self._claims:
            self._claims[folder] = claim_folder(folder, self._name)
        if self._claims[folder].name != self._name:
            return f"another running process writes {self._name} there, and msProbe would overwrite it"
        if folder in self._ended:
            return "it was recorded before in this step, with another one since, and msProbe would overwrite that"
        return None

    def _turn_to(self, folder: Path) -> None:
        """From here on msProbe's entries are those of ``folder``.

        Raises:
            Exception: msProbe does not let go of the entries it holds.
        """
        if folder != self._held:
            self._end_the_dump()
            self._debugger.set_init_step(self._step)
            self._held = folder

    def _end_the_dump(self) -> None:
        if self._held is None:
            return
        try:
            self._debugger.step()
        except Exception as error:
            # Its step writes before it clears.
            self.note("writing msProbe's dump", error)
            self._debugger.service.reset_status()
        self._ended.add(self._held)
        self._held = None

    def _start(self, model: Model | None, rank: int | None, folder: Path) -> None:
        service = self._debugger.service
        if self.config.is_read_again:
            # It looks at the file here; if it did in start, the dump would go where the file says.
            self._debugger.stop()
        service.config.dump_path = str(folder)
        self._debugger.start(model, rank_id=rank)
        if service.config.dump_path != str(folder):
            service.config.dump_path = str(folder)
            self._debugger.start(model, rank_id=rank)
