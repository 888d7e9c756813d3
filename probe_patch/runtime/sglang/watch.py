"""One model runner and what is recorded of it."""

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from probe_patch.dump_format import rollout_folder
from probe_patch.launch.startup import partial_dump_warnings
from probe_patch.runtime.driven import Debugger
from probe_patch.runtime.free_ranks import claim_free_rank
from probe_patch.runtime.log import LOGGER
from probe_patch.runtime.ranks import Identity
from probe_patch.runtime.sglang.batch import copy_inputs, mode_of, token_count
from probe_patch.runtime.sglang.engine import Engine, engine_of, state_of
from probe_patch.runtime.sglang.forward import RecordedForward
from probe_patch.runtime.sglang.selection import Selection
from probe_patch.runtime.sglang.tally import PATIENCE, Tally


def watch_for(runner: object, arguments: Mapping[str, object], debugger: Debugger) -> "Watch | None":
    """What records a runner whose ``__init__`` has returned; None for a draft model nobody asked for.

    Args:
        runner: the ``ModelRunner``.
        arguments: what its ``__init__`` was given, by parameter.
        debugger: what records.

    Raises:
        OSError: the rank's folder cannot be claimed.
    """
    engine = engine_of(runner, arguments)
    if engine.is_draft and not debugger.config.rollout.draft:
        return None
    return Watch(debugger, engine, getattr(runner, "server_args", None))


class Watch:
    """The forwards of one runner. Only its making raises: OSError, where the rank's folder cannot be claimed."""

    def __init__(self, debugger: Debugger, engine: Engine, server_args: object) -> None:
        self.service = debugger.service
        self.tally = Tally()
        self._engine = engine
        self._take_a_rank()
        self._running = False
        self._has_spoken = False
        self._pid = os.getpid()
        if self._is_selected():
            self._introduce(server_args)
        else:
            LOGGER.info("probe-patch: DUMP_ON is on, but rank in config.json leaves out rank %d", self._claim.rank)

    @property
    def _selection(self) -> Selection:
        return Selection.of(self.service.config.rollout.for_role(self._engine.role))

    def _folder_asked_for(self) -> Path:
        return self.service.config.folder() / rollout_folder(self._engine.role, self._engine.is_draft)

    def _take_a_rank(self) -> None:
        self._folder = self._folder_asked_for()
        self._claim = claim_free_rank(self._folder, self._engine.rank, self._engine.size)
        self._identity = Identity(self._claim.rank, None, self._engine.places)
        self.service.write_under(self._claim.claim)

    def _is_selected(self) -> bool:
        return self.service.config.selects_rank(self._claim.rank)

    def begin(self, runner: Any, batch: object, further: Sequence[object]) -> bool:
        """Record this forward if it counts and is asked for. Whether it is recorded; if so, ``end`` must follow."""
        if self._running:
            return False
        try:
            self.service.look_again()
            self._running = self._start_if_asked(runner, batch, further)
        except Exception as error:
            self.service.note("starting", error)
        return self._running

    def end(self, ended_by: BaseException | None) -> None:
        """The forward is over, however it ended."""
        self._running = False
        self.service.stop(ended_by)
        self.service.step()

    def _start_if_asked(self, runner: Any, batch: object, further: Sequence[object]) -> bool:
        mode, tokens = mode_of(batch, further), token_count(batch)
        selection = self._selection
        reason = selection.reason_to_skip(mode, tokens)
        if reason is not None:
            self.tally.skipped[reason] += 1
            self._say_if_it_takes_long()
            return False
        limit = selection.max_forwards
        self.tally.counted += 1
        if (limit is not None and self.tally.recorded >= limit) or not self.service.selects_this_step(self._identity):
            self.service.step()
            self._say_if_it_takes_long()
            return False
        self._keep_a_rank_of_its_own()
        self.tally.recorded += 1
        occasion = RecordedForward(
            mode=mode,
            tokens=tokens,
            state=partial(state_of, runner),
            inputs=copy_inputs(batch),
            record_inputs=self.service.config.rollout.inputs,
            engine=self._engine,
            skipped=dict(self.tally.skipped),
            last=limit is not None and self.tally.recorded == limit,
        )
        self.service.start(runner.model, self._identity, self._folder, occasion)
        if occasion.last:
            LOGGER.warning("probe-patch: max_forwards is %d, so this forward is the last one recorded", limit)
        return True

    def _keep_a_rank_of_its_own(self) -> None:
        """On some network file systems two nodes get the same lock; then the later one keeps the rank."""
        if self._folder != self._folder_asked_for():
            self._take_a_rank()
        elif not self._claim.is_ours():
            lost = self._claim.rank
            self._take_a_rank()
            LOGGER.warning(
                "probe-patch: a process elsewhere took rank %d of %s, whose locks do not reach every node; this one is "
                "rank %d from now on",
                lost,
                self._folder,
                self._claim.rank,
            )

    def _say_if_it_takes_long(self) -> None:
        if self.tally.skipped.total() + self.tally.counted == PATIENCE:
            self.say_if_nothing_recorded()

    def say_if_nothing_recorded(self) -> None:
        """Once: why this process, of which a forked child is none, has recorded nothing yet."""
        is_asked_for = self.service.config.is_on and self._is_selected()
        if not (self.tally.recorded or self._has_spoken) and is_asked_for and os.getpid() == self._pid:
            self._has_spoken = True
            LOGGER.warning(
                "probe-patch: nothing is recorded yet as rank %s of %s: %s",
                self._identity.rank,
                self._folder,
                self.tally.why_nothing(self._selection),
            )

    def _introduce(self, server_args: object) -> None:
        LOGGER.info(
            "probe-patch: DUMP_ON is on: %s forwards are recorded into %s as rank %s",
            " and ".join(sorted(self._selection.modes)),
            self._folder,
            self._identity.rank,
        )
        for sentence in partial_dump_warnings(server_args, self._selection.modes, self.service.config.level):
            LOGGER.warning("probe-patch: %s", sentence)
