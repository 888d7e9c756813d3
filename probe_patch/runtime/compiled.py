"""Whether the hot modules of the capture run compiled: only if all of them can, from the sources that are there now."""

import os
import sys
from contextlib import suppress
from functools import cache
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, SourceFileLoader
from pathlib import Path
from typing import Final

from probe_patch.runtime.build_stamp import SUFFIX, is_whole, read_stamp
from probe_patch.runtime.log import LOGGER

_COSTS: Final = "the capture runs as plain Python, which costs the run several times as much as when it is compiled"

NEVER_BUILT: Final = f"{_COSTS}; install probe-patch again where there are a C compiler and Python.h to have it so"

STALE: Final = f"{_COSTS}: what is compiled was made from other sources than those beside it; install probe-patch again"


def choose(package: str) -> str | None:
    """Have Python import the modules of this package from their sources, unless all that is compiled fits them.

    Args:
        package: the folder of ``probe_patch.runtime`` as Python has it; nothing compiled of it is imported yet.

    Returns:
        why they do not run compiled, in a sentence; None where they do.
    """
    folder = Path(package).parents[1]
    stamp = read_stamp(folder)
    if stamp is not None and stamp.modules and is_whole(folder, stamp):
        return None
    stale = [inside for inside, _, names in os.walk(package) if any(name.endswith(SUFFIX) for name in names)]
    for inside in stale:
        sys.path_importer_cache[inside] = FileFinder(inside, (SourceFileLoader, SOURCE_SUFFIXES))
    return STALE if stale else NEVER_BUILT


SHORTCOMING: Final = choose(__file__.rpartition(os.sep)[0])
"""Why the capture of this process does not run compiled, in a sentence; None where it does."""


@cache
def say_shortcoming() -> None:
    """Once per process, in the log."""
    if SHORTCOMING is not None:
        # A handler of the run's own may raise; meta.json still tells.
        with suppress(Exception):
            LOGGER.warning("probe-patch: %s", SHORTCOMING)
