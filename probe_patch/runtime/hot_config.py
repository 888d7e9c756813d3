"""config.json looked at again while the process runs, where it holds ``dump_enable``."""

from collections.abc import Callable
from typing import Final

from probe_patch.errors import ConfigError
from probe_patch.runtime.log import LOGGER
from probe_patch.runtime.settings import DumpSettings, read_settings, signature_of

WHILE_ON: Final = 0.5
WHILE_OFF: Final = 3.0
"""Seconds between two looks, as in msProbe (26.2.0)."""


class HotConfig:
    """The one file of one debugger. A config.json without ``dump_enable`` is never looked at again.

    Args:
        settings: as they were read first.
        clock: seconds, of any beginning.
    """

    def __init__(self, settings: DumpSettings, clock: Callable[[], float]) -> None:
        self._file = settings.file if settings.dump_enable is not None else None
        self._signature = None if self._file is None else self._file.signature
        self._was_on = settings.is_on
        self._clock = clock
        self._looked = clock()

    def look(self, settings: DumpSettings) -> DumpSettings:
        """The settings that hold from now on: these, or those of a new version of the file.

        A version that cannot be served is said, and turns recording off until the next one; so nothing is recorded
        that nobody asked for. A file that is gone changes nothing: editors take it away for a moment. Where the key has
        gone from the file, recording is as it was.
        """
        now = self._clock()
        if self._file is None or now - self._looked < (WHILE_ON if settings.is_on else WHILE_OFF):
            return settings
        self._looked = now
        signature = signature_of(self._file.path)
        if signature is None or signature == self._signature:
            return settings
        self._signature = signature
        try:
            found = read_settings(self._file.path, self._file.overrides)
        except ConfigError as error:
            LOGGER.warning("probe-patch: %s; nothing is recorded until it is mended", error)
            return settings.switched(is_on=False)
        if found.dump_enable is not None:
            self._was_on = found.is_on
        LOGGER.info("probe-patch: %s was read again: recording is %s", self._file.path, "on" if self._was_on else "off")
        return found.taking_over(settings).switched(is_on=self._was_on)
