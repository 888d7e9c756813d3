"""The folders a dump may write: one live process per folder, and nothing of an earlier run left in it."""

import fcntl
import os
import shutil
import socket
import weakref
from pathlib import Path
from typing import Final

from probe_patch.dump_format import CONSTRUCT_FILE, DUMP_FILE, META_FILE, STACK_FILE, TENSOR_FOLDER, step_folder
from probe_patch.runtime.log import LOGGER

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


_claims: weakref.WeakValueDictionary[tuple[int, Path, str], Claim] = weakref.WeakValueDictionary()


def claim_folder(dump_path: Path, name: str) -> Claim:
    """Claim ``name`` below ``dump_path`` (made if need be), or a name of this process's own if another has it.

    Raises:
        OSError: the folder cannot be made or written.
    """
    dump_path.mkdir(parents=True, exist_ok=True)
    key = (os.getpid(), dump_path.resolve(), name)
    claim = _claims.get(key)
    if claim is None:
        claim = _claims[key] = _new_claim(dump_path, name)
    return claim


def open_step(claim: Claim, step: int) -> Path:
    """The claimed folder of one step, made if need be, and emptied of an earlier run's dump.

    Raises:
        OSError: it cannot be made or emptied.
    """
    folder = claim.dump_path / step_folder(step) / claim.name
    folder.mkdir(parents=True, exist_ok=True)
    old = [folder / name for name in _OUR_FILES if (folder / name).exists()]
    if old:
        LOGGER.warning("probe-patch: %s holds the dump of an earlier run, which is replaced", folder)
    for path in old:
        path.unlink()
    shutil.rmtree(folder / TENSOR_FOLDER, ignore_errors=True)
    return folder


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
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError as error:
        # Some network file systems have no locks; a dump without one is better than none.
        LOGGER.warning("probe-patch: %s cannot be locked (%s)", path, error.strerror)
    return descriptor
