"""Whether a dump path can be written at all, asked before the run costs anything."""

import os
from pathlib import Path

from probe_patch.errors import ConfigError


def check_destination(dump_path: Path) -> None:
    """Look at the nearest ancestor that exists; nothing is made.

    Args:
        dump_path: absolute.

    Raises:
        ConfigError: the ancestor is no directory, or this process may not write into it.
    """
    nearest = next(path for path in (dump_path, *dump_path.parents) if os.path.lexists(path))
    if not nearest.is_dir():
        raise ConfigError(f"dump_path {dump_path} cannot be made: {nearest} is not a directory; choose another place")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise ConfigError(
            f"dump_path {dump_path} cannot be written: this process may not write into {nearest}; choose another place"
        )
