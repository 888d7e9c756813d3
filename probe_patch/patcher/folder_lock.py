"""An advisory lock on a folder: it keeps two runs apart, leaves nothing behind, and goes with the process."""

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from probe_patch.errors import SystemFailed
from probe_patch.patcher.staging import failed

PATIENCE: Final = 60.0
"""Seconds to wait for another run, which takes a fraction of one."""

_POLL: Final = 0.05
_NO_LOCKS_HERE: Final = {errno.ENOLCK, errno.EOPNOTSUPP, errno.EBADF, errno.ENOSYS, errno.EINVAL}


@contextlib.contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Hold the lock of ``folder``.

    Raises:
        SystemFailed: another run holds it for too long, or the folder cannot be opened.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise failed(folder, "cannot be opened", error) from None
    try:
        deadline = time.monotonic() + PATIENCE
        while not _try_lock(descriptor, folder):
            if time.monotonic() > deadline:
                raise SystemFailed(f"{folder}: another probe-patch has been at work here for a minute; try again later")
            time.sleep(_POLL)
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
            raise failed(folder, "cannot be locked", error) from None
    return True
