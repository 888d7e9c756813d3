"""Whether a dump path can be written at all, tried before the run costs anything."""

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Final

from probe_patch.errors import ConfigError

_ENOUGH: Final = b"\0" * 4096


def check_destination(dump_path: Path) -> None:
    """Write into the nearest ancestor that exists: nothing less tells for certain. Nothing is left there.

    Args:
        dump_path: absolute.

    Raises:
        ConfigError: it cannot be made or written; the sentence says what is in the way.
    """
    nearest = next(path for path in (dump_path, *dump_path.parents) if os.path.lexists(path))
    if not nearest.is_dir():
        raise ConfigError(f"dump_path {dump_path} cannot be made: {nearest} is not a directory; choose another place")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise ConfigError(
            f"dump_path {dump_path} cannot be written: this process may not write into {nearest}; choose another place"
        )
    try:
        with contextlib.suppress(FileNotFoundError):
            dump_path.lstat()
        with tempfile.TemporaryFile(dir=nearest) as file:
            file.write(_ENOUGH)
    except OSError as error:
        raise ConfigError(
            f"dump_path {dump_path} cannot be written ({error.strerror}); make room for it or choose another place"
        ) from None
