"""What a debugger was asked to do: the checked config, and the dump path that callers may move."""

from pathlib import Path
from typing import Final

from probe_patch.config import Config, LoadedConfig, Overrides, default_config, load_config
from probe_patch.runtime.capture.asked import Asked
from probe_patch.runtime.capture.selection import Selection
from probe_patch.runtime.capture.wanted import Wanted
from probe_patch.runtime.destination import check_destination
from probe_patch.runtime.log import LOGGER

DEFAULT_FOLDER: Final = "probe_patch_dump"


class DumpSettings:
    """``debugger.config``. Assigning ``dump_path`` (a string or a path) counts from the next start."""

    def __init__(self, config: Config) -> None:
        self.dump_path: str | Path = config.dump_path
        self.task = config.task
        self.level = config.level
        self.extra_info = config.extra_info
        self.rollout = config.rollout
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
        return (not self._steps or step in self._steps) and self.selects_rank(rank)

    def selects_rank(self, rank: int) -> bool:
        """Whether anything of this rank is to be recorded."""
        return not self._ranks or rank in self._ranks


def read_settings(config_path: str | Path | None, overrides: Overrides | None = None) -> DumpSettings:
    """The settings of a process; without a config.json, step 0 into ``probe_patch_dump`` in the working directory.

    What the config's author should know is said in the log.

    Raises:
        ConfigError: the config cannot be read or served, or its dump path cannot be written.
    """
    loaded = _load(config_path, overrides or Overrides())
    for warning in loaded.warnings:
        LOGGER.warning("probe-patch: %s: %s", config_path or "config", warning)
    settings = DumpSettings(loaded.config)
    check_destination(settings.folder())
    return settings


def _load(config_path: str | Path | None, overrides: Overrides) -> LoadedConfig:
    if config_path is not None:
        return load_config(Path(config_path), overrides)
    default = Path.cwd() / DEFAULT_FOLDER
    if overrides.dump_path is None:
        LOGGER.warning("probe-patch: no config.json: step 0 is recorded, into %s", default)
    return default_config(str(default), overrides)
