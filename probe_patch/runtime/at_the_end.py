"""Writing what is being recorded when nobody else will any more."""

import os
import weakref
from typing import Final, Protocol

from probe_patch.runtime.dump import Dump
from probe_patch.runtime.log import LOGGER

_NEVER_ENDED: Final = "the process ended, or the debugger was let go, before its stop() or step()"


class Hooked(Protocol):
    """Something that has hooks of ours on the run."""

    def detach(self) -> None:
        """Take them off."""
        ...


class WriteAtTheEnd:
    """Takes the hooks off and writes the dump when the owner goes, or the process ends; unless it is called off."""

    def __init__(self, owner: object, hooked: Hooked, dump: Dump) -> None:
        self._finalizer = weakref.finalize(owner, _write, hooked, dump, os.getpid())

    def call_off(self) -> None:
        """Somebody else writes it."""
        self._finalizer.detach()


def _write(hooked: Hooked, dump: Dump, pid: int) -> None:
    try:
        hooked.detach()
        if os.getpid() == pid:  # else it is the parent's to write
            dump.store.problems.note("stopping", _NEVER_ENDED)
            dump.write(None)
    except Exception as error:
        LOGGER.warning("probe-patch: writing what was still being recorded failed (%s)", error)
