"""Who may write which folder: one live process, and one debugger in it, per folder name below a dump path."""

import fcntl
import itertools
import os
import socket
import threading
import weakref
from pathlib import Path
from typing import Final

from probe_patch.runtime.beside import locks_folder
from probe_patch.runtime.folders import set_aside
from probe_patch.runtime.log import LOGGER


class Claim:
    """The right to one folder name below a dump path, in every step, for as long as the object lives.

    It is a lock on ``{name}.lock`` in ``locks_folder(dump_path)``, which the system gives back when the process ends,
    however it ends. It covers the whole dump path, not one step: two processes that take turns would overwrite each
    other as well.
    """

    def __init__(self, dump_path: Path, name: str, descriptor: int) -> None:
        self.dump_path = dump_path
        self.name = name
        weakref.finalize(self, os.close, descriptor)


# POSIX gives a process's lock on a file back when it closes any descriptor of that file, so each lock file may be
# open only once in a process: what is held here must not be opened again.
_claims: weakref.WeakValueDictionary[tuple[int, Path, str], Claim] = weakref.WeakValueDictionary()
_claiming: Final = threading.Lock()
_begun: Final[set[tuple[int, Path, str]]] = set()


def claim_folder(dump_path: Path, name: str) -> Claim:
    """Claim ``name`` below ``dump_path`` (made if need be), or a name of one's own if somebody alive has it.

    Who has it may be another process, or another debugger of this one.

    Raises:
        OSError: the folder cannot be made or written.
    """
    _make_room(dump_path)
    with _claiming:
        claim = _first_free(dump_path, name)
        _claims[_key(dump_path, claim.name)] = claim
        _begin_afresh(claim)
    return claim


def claim_if_free(dump_path: Path, name: str) -> Claim | None:
    """Claim ``name`` below ``dump_path`` (made if need be), unless somebody alive has it, be it this process.

    Raises:
        OSError: the folder cannot be made or written.
    """
    _make_room(dump_path)
    key = _key(dump_path, name)
    with _claiming:
        claim = None if key in _claims else _free_claim(dump_path, name)
        if claim is not None:
            _claims[key] = claim
            _begin_afresh(claim)
    return claim


def _make_room(dump_path: Path) -> None:
    dump_path.mkdir(parents=True, exist_ok=True)
    locks_folder(dump_path).mkdir(exist_ok=True)


def _key(dump_path: Path, name: str) -> tuple[int, Path, str]:
    """A forked child has its parent's claims in memory, but not its locks."""
    return os.getpid(), dump_path.resolve(), name


def _begin_afresh(claim: Claim) -> None:
    """At a process's first claim of a name, what stands under it is an earlier run's; later it is its own."""
    key = _key(claim.dump_path, claim.name)
    if key not in _begun:
        _begun.add(key)
        set_aside(claim.dump_path, claim.name)


def _first_free(dump_path: Path, name: str) -> Claim:
    """The name itself, else one with this process's host and number, else that with 2, 3, … behind it."""
    own = f"{name}_{socket.gethostname()}_{os.getpid()}"
    for candidate in itertools.chain([name, own], (f"{own}_{number}" for number in itertools.count(2))):
        claim = None if _key(dump_path, candidate) in _claims else _claim_unless_locked(dump_path, candidate)
        if claim is not None:
            if candidate != name:
                _tell_of_another(dump_path, name, candidate)
            return claim
    raise AssertionError("there is always a further name")


def _tell_of_another(dump_path: Path, name: str, own: str) -> None:
    who = "another debugger of this process" if _key(dump_path, name) in _claims else "another running process"
    LOGGER.warning("probe-patch: %s writes %s in %s; this one writes %s", who, name, dump_path, own)


def _claim_unless_locked(dump_path: Path, name: str) -> Claim | None:
    try:
        descriptor = _lock(locks_folder(dump_path) / f"{name}.lock")
    except _CannotLock as error:
        # Ranks of torch.distributed do not repeat; a dump without a lock is better than none.
        LOGGER.warning("probe-patch: %s", str(error))
        return Claim(dump_path, name, error.descriptor)
    return None if descriptor is None else Claim(dump_path, name, descriptor)


def _free_claim(dump_path: Path, name: str) -> Claim | None:
    try:
        descriptor = _lock(locks_folder(dump_path) / f"{name}.lock")
    except _CannotLock as error:
        os.close(error.descriptor)
        claim = _claim_by_file(dump_path, name)
        if claim is not None:
            LOGGER.warning(
                "probe-patch: %s, so %s.taken beside it stands for the lock while this process runs", str(error), name
            )
        return claim
    return None if descriptor is None else Claim(dump_path, name, descriptor)


def _claim_by_file(dump_path: Path, name: str) -> Claim | None:
    """Where there are no locks: a file that only one process can have made. After a kill it stays, as a block."""
    path = locks_folder(dump_path) / f"{name}.taken"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except FileExistsError:
        return None
    claim = Claim(dump_path, name, descriptor)
    weakref.finalize(claim, _remove_if_ours, path, os.getpid())
    return claim


def _remove_if_ours(path: Path, pid: int) -> None:
    """A forked child goes through its parent's finalizers too."""
    if os.getpid() == pid:
        path.unlink(missing_ok=True)


class _CannotLock(OSError):
    """The file system has no locks; ``descriptor`` is the open file."""

    def __init__(self, path: Path, error: OSError, descriptor: int) -> None:
        super().__init__(f"{path} cannot be locked ({error.strerror})")
        self.descriptor = descriptor


def _lock(path: Path) -> int | None:
    """The open, locked file; None where another process has the lock."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        # Unlike flock's, this lock is not inherited by forked children, which may outlive us.
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        os.close(descriptor)
        return None
    except OSError as error:
        raise _CannotLock(path, error, descriptor) from error
    return descriptor
