"""The folders a dump may write: one live process per folder, and nothing of an earlier run left in it."""

import fcntl
import os
import shutil
import socket
import threading
import weakref
from pathlib import Path
from typing import Final

from probe_patch.dump_format import CONSTRUCT_FILE, DUMP_FILE, META_FILE, STACK_FILE, TENSOR_FOLDER, step_folder
from probe_patch.runtime.log import LOGGER

REPLACED_FOLDER: Final = "replaced"

_OUR_FILES: Final = (DUMP_FILE, STACK_FILE, CONSTRUCT_FILE, META_FILE)


class Claim:
    """This process's right to one folder name below a dump path, in every step.

    It is a lock on ``{dump_path}/.{name}.lock``, which the system gives back when the process ends, however it ends.
    It covers the whole dump path, not one step: two processes that take turns would overwrite each other as well.
    """

    def __init__(self, dump_path: Path, name: str, descriptor: int) -> None:
        self.dump_path = dump_path
        self.name = name
        weakref.finalize(self, os.close, descriptor)


# POSIX gives a process's lock on a file back when it closes any descriptor of that file, so each lock file may be
# open only once in a process: whoever asks for the same name again shares the claim.
_claims: weakref.WeakValueDictionary[tuple[int, Path, str], Claim] = weakref.WeakValueDictionary()
_claiming: Final = threading.Lock()


def claim_folder(dump_path: Path, name: str) -> Claim:
    """Claim ``name`` below ``dump_path`` (made if need be), or a name of this process's own if another has it.

    Raises:
        OSError: the folder cannot be made or written.
    """
    dump_path.mkdir(parents=True, exist_ok=True)
    # A forked child has its parent's claims in memory, but not its locks.
    key = (os.getpid(), dump_path.resolve(), name)
    with _claiming:
        claim = _claims.get(key)
        if claim is None:
            claim = _claims[key] = _new_claim(dump_path, name)
    return claim


def open_step(claim: Claim, step: int) -> Path:
    """The claimed folder of one step, made empty: what an earlier run left there is moved aside.

    It goes to ``{dump_path}/replaced/step{N}-{name}-{k}``, with the first free k from 1.

    Raises:
        OSError: it cannot be made, or neither moved nor emptied.
    """
    folder = claim.dump_path / step_folder(step) / claim.name
    if folder.is_dir() and any(folder.iterdir()):
        _clear(folder, claim.dump_path / REPLACED_FOLDER, f"{step_folder(step)}-{claim.name}")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _clear(folder: Path, replaced: Path, name: str) -> None:
    try:
        kept = _move_aside(folder, replaced, name)
    except OSError as error:
        LOGGER.warning(
            "probe-patch: %s holds the dump of an earlier run, which is replaced: moving it failed (%s)",
            folder,
            error.strerror,
        )
        _empty(folder)
    else:
        LOGGER.warning("probe-patch: %s held the dump of an earlier run, which is now %s", folder, kept)


def _move_aside(folder: Path, replaced: Path, name: str) -> Path:
    replaced.mkdir(exist_ok=True)
    number = 1
    while os.path.lexists(replaced / f"{name}-{number}"):
        number += 1
    kept = replaced / f"{name}-{number}"
    folder.rename(kept)
    return kept


def _empty(folder: Path) -> None:
    for name in _OUR_FILES:
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / TENSOR_FOLDER, ignore_errors=True)


def _new_claim(dump_path: Path, name: str) -> Claim:
    descriptor = _lock(dump_path / f".{name}.lock")
    if descriptor is not None:
        return Claim(dump_path, name, descriptor)
    own = f"{name}_{socket.gethostname()}_{os.getpid()}"
    LOGGER.warning("probe-patch: another running process writes %s in %s; this one writes %s", name, dump_path, own)
    descriptor = _lock(dump_path / f".{own}.lock")
    if descriptor is None:
        raise FileExistsError(f"{dump_path / own} is being written by another process")
    return Claim(dump_path, own, descriptor)


def _lock(path: Path) -> int | None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        # Unlike flock's, this lock is not inherited by forked children, which may outlive us.
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        os.close(descriptor)
        return None
    except OSError as error:
        # Some network file systems have no locks; a dump without one is better than none.
        LOGGER.warning("probe-patch: %s cannot be locked (%s)", path, error.strerror)
    return descriptor
