"""What a debugger was asked to do: the checked config, and the dump path that callers may move."""

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from probe_patch.config import Config, LoadedConfig, Overrides, default_config, load_config
from probe_patch.runtime.capture.asked import Asked
from probe_patch.runtime.capture.selection import Selection
from probe_patch.runtime.capture.wanted import Wanted
from probe_patch.runtime.destination import check_destination
from probe_patch.runtime.log import LOGGER
from probe_patch.runtime.stats.backends.registry import check_chosen_backend

DEFAULT_FOLDER: Final = "probe_patch_dump"

Signature: TypeAlias = "tuple[int, int] | None"


@dataclass(frozen=True)
class ConfigFile:
    """The config.json that settings were read from.

    Attributes:
        overrides: what replaces its values.
        signature: its modification time in ns and its size in bytes, from just before it was read.
    """

    path: Path
    overrides: Overrides
    signature: Signature


class DumpSettings:
    """``debugger.config``. Assigning ``dump_path`` (a string or a path) counts from the next start.

    Attributes:
        file: where they were read; None where nothing was.
        dump_enable: what config.json says of it, null included.
        is_on: whether anything is recorded at all.
    """

    def __init__(self, config: Config, file: ConfigFile | None = None) -> None:
        self.dump_path: str | Path = config.dump_path
        self.file = file
        self.dump_enable = config.dump_enable
        self.is_on = config.dump_enable is not False
        self.task = config.task
        self.level = config.level
        self.extra_info = config.extra_info
        self.rollout = config.rollout
        self.request_id = config.values_section.request_id
        self.wanted = Wanted.by(config)
        self.asked = Asked.by(config)
        self.most_entries = config.limits.entries
        self.strict_json = config.strict_json
        self._config = config
        self._steps = frozenset(config.step)
        self._ranks = frozenset(config.rank)

    def selection(self) -> Selection:
        """Which entries of one dump are recorded."""
        return Selection.by(self._config)

    def folder(self) -> Path:
        """The absolute dump path."""
        return Path(self.dump_path).absolute()

    def selects(self, step: int, rank: int) -> bool:
        """Whether this step of this rank is to be recorded; an empty list selects all."""
        return self.selects_step(step) and self.selects_rank(rank)

    def selects_step(self, step: int) -> bool:
        """Whether anything of this step is to be recorded, whatever the rank."""
        return self.is_on and (not self._steps or step in self._steps)

    def selects_rank(self, rank: int) -> bool:
        """Whether anything of this rank is to be recorded."""
        return not self._ranks or rank in self._ranks

    def switched(self, is_on: bool) -> "DumpSettings":
        """The same, turned on or off."""
        settings = copy.copy(self)
        settings.is_on = is_on
        return settings

    def taking_over(self, earlier: "DumpSettings") -> "DumpSettings":
        """The same, with the dump path that a caller has assigned to earlier ones, if one has."""
        settings = copy.copy(self)
        if earlier.dump_path != earlier._config.dump_path:
            settings.dump_path = earlier.dump_path
        return settings


def read_settings(config_path: str | Path | None, overrides: Overrides | None = None) -> DumpSettings:
    """The settings of a process; without a config.json, step 0 into ``probe_patch_dump`` in the working directory.

    What the config's author should know is said in the log.

    Raises:
        ConfigError: the config cannot be read or served, its dump path cannot be written, or the environment asks for a
            statistics backend that is not there.
    """
    given = overrides or Overrides()
    if config_path is None:
        file, loaded = None, _default(given)
    else:
        path = Path(config_path)
        file = ConfigFile(path.absolute(), given, signature_of(path))
        loaded = load_config(path, given)
    for warning in loaded.warnings:
        LOGGER.warning("probe-patch: %s: %s", config_path or "config", warning)
    settings = DumpSettings(loaded.config, file)
    check_destination(settings.folder())
    check_chosen_backend()
    return settings


def signature_of(path: Path) -> Signature:
    """What tells one version of a file from the next; None where there is no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _default(overrides: Overrides) -> LoadedConfig:
    default = Path.cwd() / DEFAULT_FOLDER
    if overrides.dump_path is None:
        LOGGER.warning("probe-patch: no config.json: step 0 is recorded, into %s", default)
    return default_config(str(default), overrides)
