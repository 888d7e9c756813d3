"""Tensors saved beside dump.json, in ``dump_tensor_data``.

Files hold plain CPU tensors that ``torch.load(weights_only=True)`` reads, contiguous, in the dtype and shape of what
was looked at. What is saved is a copy: the run's tensors and their storages stay as they are.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

import torch
from torch import Tensor

from probe_patch.dump_format import TENSOR_FOLDER
from probe_patch.runtime.problems import Problems
from probe_patch.runtime.stats.kinds import is_readable
from probe_patch.runtime.tensor_names import TensorNames

MIB: Final = 1 << 20

FILE_BYTES: Final = 2048
"""What a file takes besides its values, at most: torch's archive around them."""


class TensorFile:
    """One saved tensor; ``name`` is None once it could not be written."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name: str | None = name


class Writing(Protocol):
    """When the files of a dump are written."""

    def add(self, values: Tensor, file: TensorFile) -> None:
        """Take these values, which the run may overwrite next."""
        ...

    @property
    def is_holding(self) -> bool:
        """Whether something was taken and is not written."""
        ...

    def finish(self) -> None:
        """The recording stops: everything taken is on disk, or its file has no name."""
        ...


class TensorFiles:
    """Which tensors of one dump are saved, under which names, up to a limit.

    Args:
        writing: how they get on disk.
        parts: parts of entry names; the tensors of entries that contain one are saved.
        limit: MiB that the files of the dump may take; None for no limit.
    """

    def __init__(self, writing: Writing, parts: Sequence[str], limit: int | None, problems: Problems) -> None:
        self._writing = writing
        self._parts = tuple(parts)
        self._names = TensorNames()
        self._limit = limit
        self._left = None if limit is None else limit * MIB
        self._problems = problems

    def takes(self, entry: str) -> bool:
        """Whether this entry's tensors are saved."""
        return any(part in entry for part in self._parts)

    def save(self, place: str, values: Tensor) -> TensorFile | None:
        """Save plain values as the file of this place; None where there are none to be saved, and beyond the limit."""
        if not values.numel() or not is_readable(values) or not self._has_room(values):
            return None
        file = TensorFile(self._names.name(place))
        self._writing.add(values, file)
        return file

    @property
    def are_held(self) -> bool:
        """Whether some are not on disk yet."""
        return self._writing.is_holding

    def finish(self) -> None:
        """Write what is not on disk yet."""
        self._writing.finish()

    def _has_room(self, values: Tensor) -> bool:
        if self._left is None:
            return True
        size = values.numel() * values.element_size() + FILE_BYTES
        if size <= self._left:
            self._left -= size
            return True
        # Once something is left out all that follows is, so that it can be told from a dump what it holds.
        self._left = 0
        self._problems.note(
            "saving tensors", f"limits.tensor_mib, {self._limit} MiB, is reached; later ones are not saved"
        )
        return False


class AtOnce:
    """Writes each tensor as it is taken."""

    def __init__(self, folder: Path, problems: Problems) -> None:
        self._folder = folder / TENSOR_FOLDER
        self._problems = problems

    def add(self, values: Tensor, file: TensorFile) -> None:
        self.write(_whole(values), file)

    @property
    def is_holding(self) -> bool:
        """Never."""
        return False

    def finish(self) -> None:
        """Nothing is left to be written."""

    def write(self, whole: Tensor, file: TensorFile) -> None:
        """Write a tensor that has its storage for itself. After a failure, which is noted, the file has no name."""
        # One that a signal cuts short must not be taken for whole.
        draft = self._folder / f".{os.getpid()}.part"
        try:
            self._folder.mkdir(exist_ok=True)
            # By its path torch would put the file's name into it over and over, and none knew how large it gets.
            with draft.open("wb") as file_on_disk:
                torch.save(whole.cpu(), file_on_disk)
            draft.replace(self._folder / str(file.name))
        except Exception as error:
            file.name = None
            # torch turns what the system says into words of its own.
            reason = f"No space left on device, in {self._folder}" if _is_full(self._folder) else error
            self._problems.note("saving a tensor", reason)
            _remove(draft)


class AtStop:
    """Holds copies on the device and writes them when the recording stops: config.json's ``async_dump``."""

    def __init__(self, at_once: AtOnce) -> None:
        self._at_once = at_once
        self._held: list[tuple[Tensor, TensorFile]] = []

    def add(self, values: Tensor, file: TensorFile) -> None:
        self._held.append((_copy(values), file))

    @property
    def is_holding(self) -> bool:
        """See ``Writing``."""
        return bool(self._held)

    def finish(self) -> None:
        held, self._held = self._held[::-1], []
        while held:
            # Each lets go of its memory as soon as it is written.
            self._at_once.write(*held.pop())


def _copy(values: Tensor) -> Tensor:
    """A copy on the same device: contiguous, and with no more storage than it needs."""
    return values.resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)


def _whole(values: Tensor) -> Tensor:
    """On the CPU, contiguous, and with no more storage than it needs."""
    host = values.resolve_conj().resolve_neg().cpu().contiguous()
    return host if host.untyped_storage().nbytes() == host.numel() * host.element_size() else host.clone()


def _is_full(folder: Path) -> bool:
    try:
        return os.statvfs(folder.parent).f_bavail == 0
    except OSError:
        return False


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return
