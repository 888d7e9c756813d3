"""Temporary files beside their targets: written and synced, renamed over them, and cleared away."""

import contextlib
import errno
import glob
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from probe_patch.errors import SystemFailed

_CANNOT_SYNC_FOLDERS: Final = {errno.EINVAL, errno.EBADF, errno.EOPNOTSUPP, errno.ENOSYS}


def temporary(path: Path, label: str) -> Path:
    """The name of this process's temporary file for ``path``."""
    return path.with_name(f"{_prefix(path)}{os.getpid()}-{label}")


def left_overs(path: Path) -> Iterator[Path]:
    """Temporary files that any process left beside ``path``."""
    return path.parent.glob(glob.escape(_prefix(path)) + "*")


def stage(staged: Path, content: bytes, path: Path) -> None:
    """Write and sync ``staged`` with ``content``, and the mode, owner and extended attributes of ``path``.

    Raises:
        SystemFailed: it cannot be written.
    """
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
        raise failed(path, "cannot be written beside", error) from None


def rename_over(source: Path, target: Path) -> None:
    """Put ``source`` in ``target``'s place, in one step, for good.

    Raises:
        SystemFailed: it cannot be renamed.
    """
    try:
        source.replace(target)
        _sync_folder(target.parent)
    except OSError as error:
        raise failed(target, "cannot be replaced", error) from None


def remove(paths: Iterable[Path]) -> None:
    """Remove what is there and can be removed."""
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def failed(path: Path, what: str, error: OSError) -> SystemFailed:
    return SystemFailed(f"{path}: {what} ({error.strerror or error}); nothing was changed")


def _prefix(path: Path) -> str:
    return f".{path.name}.probe-patch-"


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


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC_FOLDERS:
            raise
    finally:
        os.close(descriptor)
