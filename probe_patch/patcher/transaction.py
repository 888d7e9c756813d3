"""Several files written together: all of them, or none.

New contents and copies of the old ones are first written and synced beside their targets; then each new file is
renamed over its target and read back. Whatever goes wrong on the way, the old files are renamed into place again,
which needs no space. A process killed in between leaves every file either old or new, and temporary files that the
next run removes.
"""

import contextlib
import errno
import fcntl
import glob
import os
import signal
import stat
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from probe_patch.errors import SystemFailed

_LOCK_PATIENCE: Final = 60.0
_LOCK_POLL: Final = 0.05
_NO_LOCKS_HERE: Final = {errno.ENOLCK, errno.EOPNOTSUPP, errno.EBADF, errno.ENOSYS, errno.EINVAL}


@dataclass(frozen=True)
class Snapshot:
    """A file as it was read: its contents, and enough of its identity to notice a change."""

    path: Path
    content: bytes
    identity: tuple[int, int, int, int]


@dataclass(frozen=True)
class Change:
    """A file to be replaced."""

    before: Snapshot
    after: bytes


def read(path: Path) -> Snapshot:
    """Read a file to be patched.

    Raises:
        SystemFailed: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return Snapshot(path, file.read(), _identity(os.fstat(file.fileno())))
    except OSError as error:
        raise _failed(path, "cannot be read", error) from None


@contextlib.contextmanager
def locked(paths: Sequence[Path]) -> Iterator[None]:
    """Keep other runs of probe-patch away from the folders of ``paths``, and clear what a killed one left there.

    Raises:
        SystemFailed: another run holds one of them for too long.
    """
    folders = sorted({path.parent for path in paths})
    with contextlib.ExitStack() as stack:
        for folder in folders:
            stack.enter_context(_lock(folder))
        for path in paths:
            _remove_left_overs(path)
        yield


def commit(changes: Sequence[Change]) -> None:
    """Write every change, or leave every file as it was. To be called under ``locked``.

    Raises:
        SystemFailed: the machine said no, or a file changed since it was read; everything is as before.
    """
    for change in changes:
        _require_writable(change.before.path)
    staged = [
        (change, _temporary(change.before.path, "new"), _temporary(change.before.path, "old")) for change in changes
    ]
    replaced: list[tuple[Change, Path]] = []
    try:
        for change, new, old in staged:
            _stage(new, change.after, change.before.path)
            _stage(old, change.before.content, change.before.path)
        for change, new, old in staged:
            _require_unchanged(change.before)
            replaced.append((change, old))
            _rename(new, change.before.path)
        for change in changes:
            if read(change.before.path).content != change.after:
                raise SystemFailed(f"{change.before.path}: does not read back as it was written; rolled back")
        with _deaf_to_interrupts():
            replaced.clear()
            _remove(new_or_old for _, *pair in staged for new_or_old in pair)
    except BaseException:
        with _deaf_to_interrupts():
            for change, old in reversed(replaced):
                _restore(change, old)
            _remove(new_or_old for _, *pair in staged for new_or_old in pair)
        raise


@contextlib.contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Ctrl-C has no effect inside: what is done is done, or is just being undone, and takes no time."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def _restore(change: Change, old: Path) -> None:
    path = change.before.path
    with contextlib.suppress(SystemFailed):
        if read(path).content == change.before.content:
            return
    try:
        _rename(old, path)
    except SystemFailed as error:
        raise SystemFailed(f"{error}; {path} could not be rolled back: it holds the new contents, whole") from None


def _stage(staged: Path, content: bytes, path: Path) -> None:
    """Write a synced file with ``content``, and the mode, owner and extended attributes of ``path``."""
    try:
        descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with open(descriptor, "wb", closefd=False) as file:
                file.write(content)
            _copy_ownership(path, descriptor)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _failed(path, "cannot be written beside", error) from None


def _copy_ownership(path: Path, descriptor: int) -> None:
    status = path.stat()
    ours = os.fstat(descriptor)
    if (status.st_uid, status.st_gid) != (ours.st_uid, ours.st_gid):
        os.fchown(descriptor, status.st_uid, status.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(status.st_mode))
    if hasattr(os, "listxattr"):
        with contextlib.suppress(OSError):
            for name in os.listxattr(path):
                os.setxattr(descriptor, name, os.getxattr(path, name))


def _rename(source: Path, target: Path) -> None:
    try:
        source.replace(target)
        _sync_folder(target.parent)
    except OSError as error:
        raise _failed(target, "cannot be replaced", error) from None


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_LOCKS_HERE:
            raise
    finally:
        os.close(descriptor)


def _require_writable(path: Path) -> None:
    """A rename would replace a file that is write-protected; its owner protected it for a reason."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError as error:
        raise _failed(path, "cannot be looked at", error) from None
    if not mode & 0o222 or not os.access(path, os.W_OK):
        raise SystemFailed(f"{path}: is read-only (mode {mode:04o}); make it writable first, nothing was written")


def _require_unchanged(before: Snapshot) -> None:
    now = read(before.path)
    if now.content != before.content or now.identity != before.identity:
        raise SystemFailed(f"{before.path}: was changed by somebody else meanwhile; run the command again")


@contextlib.contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """An advisory lock on the folder itself: it leaves nothing behind, and goes with the process."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise _failed(folder, "cannot be opened", error) from None
    try:
        deadline = time.monotonic() + _LOCK_PATIENCE
        while not _try_lock(descriptor, folder):
            if time.monotonic() > deadline:
                raise SystemFailed(f"{folder}: another probe-patch has been at work here for a minute; try again later")
            time.sleep(_LOCK_POLL)
        yield
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int, folder: Path) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        # Some network file systems lock no folders; the check before each rename still notices a second run.
        if error.errno not in _NO_LOCKS_HERE:
            raise _failed(folder, "cannot be locked", error) from None
    return True


def _remove_left_overs(path: Path) -> None:
    _remove(path.parent.glob(glob.escape(_temporary_prefix(path)) + "*"))


def _temporary(path: Path, label: str) -> Path:
    return path.with_name(f"{_temporary_prefix(path)}{os.getpid()}-{label}")


def _temporary_prefix(path: Path) -> str:
    return f".{path.name}.probe-patch-"


def _identity(status: os.stat_result) -> tuple[int, int, int, int]:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def _failed(path: Path, what: str, error: OSError) -> SystemFailed:
    return SystemFailed(f"{path}: {what} ({error.strerror or error}); nothing was changed")
