"""Starts, stops and steps of recording: the engine behind ``PrecisionDebugger``. Its public methods never raise."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from torch import nn

from probe_patch.errors import WrongUsage
from probe_patch.runtime.at_the_end import Hooked, WriteAtTheEnd
from probe_patch.runtime.capture.capture import Capture
from probe_patch.runtime.capture.functions.custom import CustomApis
from probe_patch.runtime.capture.names import Model
from probe_patch.runtime.capture.saved import SavedValues
from probe_patch.runtime.claims import Claim, claim_folder
from probe_patch.runtime.dump import Dump
from probe_patch.runtime.hot_config import HotConfig
from probe_patch.runtime.log import LOGGER
from probe_patch.runtime.occasion import BY_HAND, Occasion
from probe_patch.runtime.problems import Problems
from probe_patch.runtime.ranks import Identity, identify
from probe_patch.runtime.settings import DumpSettings
from probe_patch.runtime.tokens import ALL_TOKENS, ChosenTokens

_MISSED_STOP: Final = "its stop was not reached, so forwards behind the phase may be in this dump"


@dataclass(frozen=True)
class Stretch:
    """What one start asks for: to record ``model`` into ``folder``/step{N}/rank{R} until the stop.

    Attributes:
        model: None where a level needs none.
        folder: absolute.
        tokens: what of the model's forwards.
    """

    model: Model | None
    identity: Identity
    folder: Path
    occasion: Occasion
    tokens: ChosenTokens = ALL_TOKENS


class Service:
    """One dump per dump path and step; at most one of them is being recorded.

    What a dump records is what the config says when the dump is begun: at its first start in a step.

    Args:
        config: what is asked for; replaced when its file changes, where that is looked at again.
        clock: seconds, for when that is.

    Attributes:
        custom_apis: functions to record besides those of torch.
    """

    def __init__(self, config: DumpSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self.config = config
        self.custom_apis = CustomApis()
        self._hot_config = HotConfig(config, clock)
        self._step = 0
        self._first_step = 0
        self._said: set[str] = set()
        self._problems = Problems(self._said)
        self._dumps: dict[Path, Dump] = {}
        self._claims: dict[tuple[Path, str], Claim] = {}
        self._given_claims: dict[Path, Claim] = {}
        self._running: Stretch | None = None
        self._recording: tuple[Capture, WriteAtTheEnd] | None = None
        self._saved: dict[Path, tuple[SavedValues, WriteAtTheEnd]] = {}
        self._pid = os.getpid()
        self._lost = 0

    @property
    def current_step(self) -> int:
        """How often ``step`` was called, counted from the number that ``set_init_step`` was given."""
        return self._first_step + self._step

    @property
    def running(self) -> Stretch | None:
        """What was started and not stopped."""
        return self._running

    def set_init_step(self, number: int) -> None:
        """Count steps from this number on, so that a run that goes on from a checkpoint goes on counting."""
        self._first_step = number

    def write_under(self, claim: Claim) -> None:
        """Use this claim, which the caller keeps, for the dump path it is for, rather than one of our own."""
        self._given_claims = {claim.dump_path: claim}

    def selects_this_step(self, identity: Identity) -> bool:
        """Whether anything is recorded, and the step and rank lists take in this process in this step."""
        return self.config.selects(self.current_step, identity.rank_for_filter)

    @property
    def is_idle(self) -> bool:
        """Whether a start would do nothing: nothing runs, and nothing of this step is recorded."""
        return self._running is None and not self.config.selects_step(self.current_step)

    def look_again(self) -> None:
        """Read config.json again if it asks for that and has changed. Whoever starts calls it first.

        Where it turns recording off, what runs is stopped. All else it says counts from the next dump that is begun.
        """
        try:
            self.config = self._hot_config.look(self.config)
            if not self.config.is_on:
                self._end(None)
        except Exception as error:
            self.note("reading config.json again", error)

    def start(
        self,
        model: Model | None,
        identity: Identity,
        folder: Path,
        occasion: Occasion,
        tokens: ChosenTokens = ALL_TOKENS,
    ) -> None:
        """Record ``model`` into ``folder``/step{N}/rank{R} until ``stop``. Starting what is running changes nothing.

        What runs into another folder is stopped first. As its own stop was left out, its meta.json has a problem, and
        so it has when a phase is started again while it runs.

        At level debug, this only says where ``save`` records to.
        """
        self._forget_the_parents()
        if self._running is not None:
            is_the_same = self._running.folder == folder
            if not is_the_same or occasion.ends_by_itself:
                self.note_missed_stop()
            if is_the_same:
                return
            self._end(None)
        try:
            self._begin(Stretch(model, identity, folder, occasion, tokens))
        except Exception as error:
            self.note("starting", error)

    def stop(self, ended_by: BaseException | None) -> None:
        """Take every hook off and write the files; ``ended_by`` is the exception that cut the recording short."""
        self._end(ended_by)
        self.look_again()

    def save(self, variable: object, name: str, with_gradient: bool) -> None:
        """At level debug: record a value, and what flows back to it until the step ends. Elsewhere nothing."""
        if self.config.level != "debug":
            return
        self._forget_the_parents()
        try:
            running = self._running
            identity = identify(None) if running is None else running.identity
            if self.selects_this_step(identity):
                folder = self.config.folder() if running is None else running.folder
                occasion = BY_HAND if running is None else running.occasion
                self._saved_values(folder, identity, occasion).save(variable, name, with_gradient)
        except Exception as error:
            self.note("saving a value", error)

    def step(self) -> None:
        """End the step: what runs is stopped, and the next start belongs to the next step."""
        self._end(None)
        saved, self._saved = self._saved, {}
        for folder, (values, at_the_end) in saved.items():
            at_the_end.call_off()
            values.detach()
            self._write(self._dumps[folder], None)
        # Claims of dump paths that this step did not use go back, so that a path per rollout does not pile up locks.
        self._claims = {key: claim for key, claim in self._claims.items() if key[0] in self._dumps}
        self._dumps = {}
        self._step += 1
        self.look_again()

    def note_missed_stop(self) -> None:
        """If something is still being recorded, say in its meta.json that it went on for too long."""
        if self._recording is not None:
            self.note("stopping", _MISSED_STOP)

    def note(self, kind: str, failure: BaseException | str) -> None:
        """Record a failure around the recording; meta.json of the dump being recorded tells of it, and the log."""
        dump = None if self._running is None else self._dumps.get(self._running.folder)
        problems = self._problems if dump is None else dump.store.problems
        problems.note(kind, failure)

    def _begin(self, stretch: Stretch) -> None:
        if not self.selects_this_step(stretch.identity):
            return
        if self.config.level == "debug":
            self._running = stretch
            return
        _check_model(stretch.model)
        if stretch.model is None and self.config.wanted.modules:
            raise WrongUsage(f"start() was given no model, and level {self.config.level} records a model's modules")
        dump = self._dump(stretch.folder, stretch.identity, stretch.occasion)
        dump.store.recorder.further_slices = () if stretch.tokens.part is None else (stretch.tokens.part,)
        capture = Capture(dump.store, self.custom_apis, stretch.tokens.forwards)
        self._running = stretch
        self._recording = capture, WriteAtTheEnd(self, capture, dump)
        try:
            capture.attach(stretch.model)
        except Exception as error:
            capture.detach()
            dump.store.problems.note("hooking the model", error)

    def _end(self, ended_by: BaseException | None) -> None:
        self._forget_the_parents()
        running, self._running = self._running, None
        recording, self._recording = self._recording, None
        if running is None or recording is None:
            return
        capture, at_the_end = recording
        at_the_end.call_off()
        capture.detach()
        self._write(self._dumps[running.folder], ended_by)
        capture.is_written()

    def _write(self, dump: Dump, ended_by: BaseException | None) -> None:
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

    def _saved_values(self, folder: Path, identity: Identity, occasion: Occasion) -> SavedValues:
        if folder not in self._saved:
            dump = self._dump(folder, identity, occasion)
            values = SavedValues(dump.store)
            self._saved[folder] = values, WriteAtTheEnd(self, values, dump)
        return self._saved[folder][0]

    def _dump(self, folder: Path, identity: Identity, occasion: Occasion) -> Dump:
        dump = self._dumps.get(folder)
        if dump is None:
            claim = self._given_claims.get(folder) or self._claim(folder, identity.folder)
            dump = self._dumps[folder] = Dump(self.config, claim, identity, self.current_step, occasion, self._said)
            LOGGER.debug("probe-patch: recording into %s", dump.folder)
        return dump

    def _claim(self, folder: Path, name: str) -> Claim:
        claim = self._claims.get((folder, name)) or claim_folder(folder, name)
        self._claims[folder, name] = claim
        return claim

    def _forget_the_parents(self) -> None:
        """In a forked child: what was being recorded is its parent's to write."""
        if self._pid == os.getpid():
            return
        self._pid = os.getpid()
        recorded: list[tuple[Hooked, WriteAtTheEnd]] = [*self._saved.values()]
        if self._recording is not None:
            recorded.append(self._recording)
        self._running = self._recording = None
        self._saved = {}
        self._dumps = {}
        self._claims = {}
        self._given_claims = {}
        for hooked, at_the_end in recorded:
            at_the_end.call_off()
            hooked.detach()


def _check_model(model: object) -> None:
    """Raises WrongUsage where it is neither a module nor several."""
    chunks = model if isinstance(model, list | tuple) else [model]
    for chunk in chunks:
        if not isinstance(chunk, nn.Module) and model is not None:
            raise WrongUsage(
                f"start() was given a {type(chunk).__name__} to record; pass a torch.nn.Module or a list of them"
            )
