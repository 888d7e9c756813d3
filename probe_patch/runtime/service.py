"""Starts, stops and steps of recording: the engine behind ``PrecisionDebugger``. Its public methods never raise."""

import os
from pathlib import Path
from typing import Final

from probe_patch.runtime.capture.capture import Capture
from probe_patch.runtime.capture.names import Model
from probe_patch.runtime.claims import Claim, claim_folder
from probe_patch.runtime.dump import Dump
from probe_patch.runtime.log import LOGGER
from probe_patch.runtime.occasion import Occasion
from probe_patch.runtime.problems import Problems
from probe_patch.runtime.ranks import Identity
from probe_patch.runtime.settings import DumpSettings

_MISSED_STOP: Final = "its stop was not reached, so forwards behind the phase may be in this dump"


class Service:
    """One dump per dump path and step; at most one of them is being recorded."""

    def __init__(self, config: DumpSettings) -> None:
        self.config = config
        self._step = 0
        self._said: set[str] = set()
        self._problems = Problems(self._said)
        self._dumps: dict[Path, Dump] = {}
        self._claims: dict[Path, Claim] = {}
        self._recording: tuple[Path, Capture] | None = None
        self._pid = os.getpid()
        self._lost = 0

    @property
    def current_step(self) -> int:
        """How often ``step`` was called."""
        return self._step

    def selects_this_step(self, identity: Identity) -> bool:
        """Whether the step and rank lists take in this process in this step."""
        return self.config.selects(self._step, identity.rank_for_filter)

    def start(self, model: Model | None, identity: Identity, folder: Path, occasion: Occasion) -> None:
        """Record ``model`` into ``folder``/step{N}/rank{R} until ``stop``. Starting what is running changes nothing.

        What runs into another folder is stopped first. As its own stop was left out, its meta.json has a problem, and
        so it has when a phase is started again while it runs.
        """
        self._forget_the_parents()
        if self._recording is not None:
            running = self._recording[0]
            if running != folder or occasion.ends_by_itself:
                self.note_missed_stop()
            if running == folder:
                return
            self.stop(None)
        try:
            if not self.selects_this_step(identity):
                return
            if model is None and self.config.wanted.modules:
                self._problems.note(
                    "starting", f"start() was given no model, and level {self.config.level} records a model's modules"
                )
                return
            self._begin(model, self._dump(folder, identity, occasion), folder)
        except Exception as error:
            self._problems.note("starting", error)

    def stop(self, ended_by: BaseException | None) -> None:
        """Take every hook off and write the files; ``ended_by`` is the exception that cut the recording short."""
        self._forget_the_parents()
        if self._recording is None:
            return
        folder, capture = self._recording
        self._recording = None
        capture.detach()
        dump = self._dumps[folder]
        try:
            written = dump.write(ended_by)
        except Exception as error:
            self._problems.note("stopping", error)
            written = False
        if not written:
            self._tell_of_loss(dump.folder)

    def _tell_of_loss(self, folder: Path) -> None:
        """At the 1st, 2nd, 4th, 8th, … dump that could not be written: a full disk may stay full for long."""
        self._lost += 1
        if self._lost & (self._lost - 1) == 0:
            LOGGER.warning("probe-patch: %d dumps are lost so far, the last one that of %s", self._lost, folder)

    def step(self) -> None:
        """End the step: what runs is stopped, and the next start belongs to the next step."""
        self.stop(None)
        # Claims of dump paths that this step did not use go back, so that a path per rollout does not pile up locks.
        self._claims = {folder: claim for folder, claim in self._claims.items() if folder in self._dumps}
        self._dumps = {}
        self._step += 1

    def _forget_the_parents(self) -> None:
        """In a forked child: what was being recorded is its parent's to write."""
        if self._pid == os.getpid():
            return
        self._pid = os.getpid()
        recording, self._recording = self._recording, None
        self._dumps = {}
        self._claims = {}
        if recording is not None:
            recording[1].detach()

    def note_missed_stop(self) -> None:
        """If something is still being recorded, say in its meta.json that it went on for too long."""
        if self._recording is not None:
            self.note("stopping", _MISSED_STOP)

    def note(self, kind: str, failure: BaseException | str) -> None:
        """Record a failure around the recording; meta.json of the dump being recorded tells of it, and the log."""
        problems = self._problems if self._recording is None else self._dumps[self._recording[0]].store.problems
        problems.note(kind, failure)

    def _dump(self, folder: Path, identity: Identity, occasion: Occasion) -> Dump:
        dump = self._dumps.get(folder)
        if dump is None:
            claim = self._claims[folder] = claim_folder(folder, identity.folder)
            dump = self._dumps[folder] = Dump(self.config, claim, identity, self._step, occasion, self._said)
            LOGGER.debug("probe-patch: recording into %s", dump.folder)
        return dump

    def _begin(self, model: Model | None, dump: Dump, folder: Path) -> None:
        capture = Capture(dump.store)
        self._recording = (folder, capture)
        try:
            capture.attach(model)
        except Exception as error:
            capture.detach()
            dump.store.problems.note("hooking the model", error)
