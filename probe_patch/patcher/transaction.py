"""Several files written together: all of them, or none.

New contents and copies of the old ones are first written and synced beside their targets; then each new file is
renamed over its target and read back. Whatever goes wrong on the way, the old files are renamed into place again,
which needs no space. A process killed in between leaves every file either old or new, and temporary files that the
next run removes.
"""

import contextlib
import os
import pwd
import signal
import stat
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from probe_patch.entry import HEEDED
from probe_patch.errors import SystemFailed
from probe_patch.patcher.folder_lock import folder_lock
from probe_patch.patcher.staging import failed, left_overs, remove, rename_over, stage, temporary


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
        raise failed(path, "cannot be read", error) from None


@contextlib.contextmanager
def locked(paths: Sequence[Path]) -> Iterator[None]:
    """Keep other runs of probe-patch away from the folders of ``paths``, and clear what a killed one left there.

    Raises:
        SystemFailed: another run holds one of them for too long.
    """
    with contextlib.ExitStack() as stack:
        for folder in sorted({path.parent for path in paths}):
            stack.enter_context(folder_lock(folder))
        for path in paths:
            remove(left_overs(path))
        yield


def commit(changes: Sequence[Change]) -> None:
    """Write every change, or leave every file as it was. To be called under ``locked``.

    Raises:
        SystemFailed: the machine said no, or a file changed since it was read; everything is as before.
    """
    for change in changes:
        _require_writable(change.before.path)
    staged = [
        (change, temporary(change.before.path, "new"), temporary(change.before.path, "old")) for change in changes
    ]
    replaced: list[tuple[Change, Path]] = []
    try:
        for change, new, old in staged:
            stage(new, change.after, change.before.path)
            stage(old, change.before.content, change.before.path)
        for change, new, old in staged:
            _require_unchanged(change.before)
            replaced.append((change, old))
            rename_over(new, change.before.path)
        for change in changes:
            if read(change.before.path).content != change.after:
                raise SystemFailed(f"{change.before.path}: does not read back as it was written; rolled back")
        with _deaf_to_interrupts():
            replaced.clear()
            remove(new_or_old for _, *pair in staged for new_or_old in pair)
    except BaseException:
        with _deaf_to_interrupts():
            for change, old in reversed(replaced):
                _restore(change, old)
            remove(new_or_old for _, *pair in staged for new_or_old in pair)
        raise


@contextlib.contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Ctrl-C and its like have no effect inside: what is done is done, or is just being undone, and takes no time."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: signal.signal(number, signal.SIG_IGN) for number in HEEDED}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _restore(change: Change, old: Path) -> None:
    path = change.before.path
    with contextlib.suppress(SystemFailed):
        if read(path).content == change.before.content:
            return
    try:
        rename_over(old, path)
    except SystemFailed as error:
        raise SystemFailed(f"{error}; {path} could not be rolled back: it holds the new contents, whole") from None


def _require_writable(path: Path) -> None:
    """A rename would replace a file that is write-protected; its owner protected it for a reason."""
    try:
        status = path.stat()
    except OSError as error:
        raise failed(path, "cannot be looked at", error) from None
    mode = stat.S_IMODE(status.st_mode)
    may_write = os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)
    if not may_write and status.st_uid != os.geteuid():
        owner = _name_of(status.st_uid)
        raise SystemFailed(
            f"{path}: belongs to {owner}, and you may not write it (mode {mode:04o}); run this as {owner}, or have it "
            "made writable for you; nothing was written"
        )
    if not mode & 0o222 or not may_write:
        raise SystemFailed(f"{path}: is read-only (mode {mode:04o}); make it writable first, nothing was written")


def _name_of(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"


def _require_unchanged(before: Snapshot) -> None:
    now = read(before.path)
    if now.content != before.content or now.identity != before.identity:
        raise SystemFailed(f"{before.path}: was changed by somebody else meanwhile; run the command again")


def _identity(status: os.stat_result) -> tuple[int, int, int, int]:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
