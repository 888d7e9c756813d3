"""A debugger whose recording is msProbe's."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from probe_patch.config import default_text, load_config_for_msprobe
from probe_patch.debuggers import MSPROBE_CHECKED, limits_of
from probe_patch.runtime.destination import check_destination
from probe_patch.runtime.log import LOGGER
from probe_patch.runtime.msprobe.installed import make_debugger, msprobe_version, precision_debugger_class
from probe_patch.runtime.msprobe.service import MsprobeService
from probe_patch.runtime.msprobe.settings import MsprobeSettings
from probe_patch.runtime.settings import DEFAULT_FOLDER


class MsprobeDebugger:
    """What ``PrecisionDebugger`` is to the lines of a patch, with msProbe's in its place.

    Args:
        config_path: a config.json, which msProbe gets as it is; without one, step 0 is recorded into
            ``probe_patch_dump`` in the working directory.

    Raises:
        SystemFailed: there is no msProbe that can be driven.
        ConfigError: the config cannot be read, msProbe refuses it, or its dump path cannot be written.
    """

    def __init__(self, config_path: Path | None) -> None:
        debugger_class = precision_debugger_class()
        with _config_file(config_path) as file:
            self.config = MsprobeSettings(load_config_for_msprobe(file))
            check_destination(self.config.folder())
            debugger = make_debugger(debugger_class, file, str(config_path or "the config.json for msProbe"))
        if debugger.config.dump_path != self.config.dump_path:
            LOGGER.warning(
                "probe-patch: msProbe has had a debugger in this process before, made for %s: its settings hold, "
                "and not those of %s",
                debugger.config.dump_path,
                config_path or "the default",
            )
        self.service = MsprobeService(self.config, debugger)
        version = msprobe_version() or "of unknown version"
        checked = "" if version == MSPROBE_CHECKED else f" (this is {version}, checked was {MSPROBE_CHECKED})"
        for limit in limits_of("msprobe"):
            LOGGER.warning("probe-patch: %s%s", limit, checked)


@contextmanager
def _config_file(named: Path | None) -> Iterator[Path]:
    """The config.json named, or one that stands in for it and is gone when msProbe has read it."""
    if named is not None:
        yield named.absolute()
        return
    default = Path.cwd() / DEFAULT_FOLDER
    LOGGER.warning("probe-patch: no config.json: step 0 is recorded, into %s", default)
    with tempfile.TemporaryDirectory(prefix="probe-patch-") as folder:
        file = Path(folder) / "config.json"
        file.write_text(default_text(str(default)), encoding="utf-8")
        yield file
