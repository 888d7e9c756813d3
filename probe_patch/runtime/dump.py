"""One dump: the store of one phase of one step, where it goes, and writing it there."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from probe_patch.dump_format import CONSTRUCT_FILE, DEBUG_FILE, DUMP_FILE, META_FILE, STACK_FILE, TENSOR_FOLDER
from probe_patch.runtime.claims import Claim
from probe_patch.runtime.compiled import say_shortcoming
from probe_patch.runtime.documents import construct_document, dump_document, stack_document
from probe_patch.runtime.empty import why_empty
from probe_patch.runtime.files import write_atomically
from probe_patch.runtime.folders import open_step
from probe_patch.runtime.json_text import BARE, STRICT
from probe_patch.runtime.log import LOGGER
from probe_patch.runtime.meta import Meta
from probe_patch.runtime.nan_check import NanCheck
from probe_patch.runtime.occasion import Occasion
from probe_patch.runtime.problems import Problems
from probe_patch.runtime.ranks import Identity
from probe_patch.runtime.recorder import recorder_into
from probe_patch.runtime.settings import DumpSettings
from probe_patch.runtime.store import Store

if TYPE_CHECKING:
    from pathlib import Path

Part = TypeVar("Part")


class Dump:
    """Opened at a step's first start for a dump path, written at every stop.

    Raises:
        OSError: on construction, when the folder cannot be had.
    """

    def __init__(
        self, settings: DumpSettings, claim: Claim, identity: Identity, step: int, occasion: Occasion, said: set[str]
    ) -> None:
        self._settings = settings
        self._claim = claim
        self._identity = identity
        self._step = step
        self._occasion = occasion
        self._started = datetime.now(timezone.utc)
        self._ended_by: str | None = None
        self.folder = open_step(claim, step)
        say_shortcoming()
        problems = Problems(said)
        self._nan_check = NanCheck(identity.rank) if settings.task == "nan_check" else None
        self.store = Store(
            problems,
            settings.wanted,
            settings.selection(),
            recorder_into(self.folder, settings.asked, problems),
            settings.most_entries,
            STRICT if settings.strict_json else BARE,
            self._nan_check,
            self.folder,
        )

    def write(self, ended_by: BaseException | None) -> bool:
        """Bring the files up to what the store holds. What cannot be written is a problem, and the rest still is.

        Returns:
            whether dump.json, or debug.json, and meta.json are there.
        """
        store = self.store
        # Of several stretches the one that failed counts, even if others follow.
        self._ended_by = self._ended_by or (None if ended_by is None else type(ended_by).__name__)
        try:
            store.flush()
        except Exception as error:
            store.problems.note("encoding the dump", error)
        if ended_by is None and (reason := why_empty(store, self._occasion)) is not None:
            store.problems.note("recording", reason)
        settings = self._settings
        by_name = settings.level == "debug"
        data_folder = self.folder / TENSOR_FOLDER if settings.asked.saved else None
        written = self._write(
            DEBUG_FILE if by_name else DUMP_FILE,
            lambda: dump_document(settings.task, settings.level, data_folder, store.lines),
        )
        if settings.extra_info and not by_name:
            self._write(STACK_FILE, lambda: stack_document(store.stack_groups()))
            self._write(CONSTRUCT_FILE, self._construct)
        for name, content in self._described(self._occasion.files).items():
            self._write(name, partial(_as_it_is, content))
        written = self._write(META_FILE, lambda: [self._meta().document()]) and written
        if written:
            LOGGER.info("probe-patch: %d entries in %s", store.entries, self.folder)
        return written

    def _construct(self) -> Iterable[str | bytes | memoryview]:
        store = self.store
        calls = store.calls if self._settings.wanted.modules else 0
        return construct_document(store.enclosures(), calls, store.micro_batches)

    def _described(self, describe: Callable[[], Mapping[str, Part]]) -> Mapping[str, Part]:
        try:
            return describe()
        except Exception as error:
            self.store.problems.note("describing what was recorded", error)
            return {}

    def _meta(self) -> Meta:
        found = {} if self._nan_check is None else self._nan_check.members()
        return Meta(
            step=self._step,
            about={**self._described(self._occasion.members), **found},
            identity=self._identity,
            records=self._settings.wanted.directions(),
            entries=self.store.entries,
            tensors=self.store.recorder.tensors,
            recomputed=self.store.recomputed,
            micro_batches=self.store.micro_batches if self._settings.wanted.modules else None,
            started=self._started,
            ended=datetime.now(timezone.utc),
            ended_by=self._ended_by,
            problems=self.store.problems.all(),
        )

    def _write(self, name: str, pieces: Callable[[], Iterable[str | bytes | memoryview] | bytes]) -> bool:
        path: Path = self.folder / name
        try:
            write_atomically(path, pieces())
        except Exception as error:
            self.store.problems.note(f"writing {name}", f"{type(error).__name__}: {error}, in {self.folder}")
            return False
        return True


def _as_it_is(content: bytes) -> bytes:
    return content
