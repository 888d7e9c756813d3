"""A config.json that a command was given."""

from pathlib import Path

from probe_patch.cli.errors import say_note
from probe_patch.config import Config, ConfigForMsprobe, load_config, load_config_for_msprobe
from probe_patch.debuggers import BUILTIN, DebuggerName


def checked_config(file: Path) -> Config:
    """A config that the runtime accepts; what its author should know is said on stderr.

    Raises:
        ConfigError: as for ``load_config``.
    """
    loaded = load_config(file)
    for warning in loaded.warnings:
        say_note(f"{file}: {warning}")
    return loaded.config


def checked_config_of(debugger: DebuggerName, file: Path) -> Config | ConfigForMsprobe:
    """The same, for whichever debugger is to read it; what only msProbe knows of, it judges itself when it runs.

    Raises:
        ConfigError: as for ``load_config``, or ``load_config_for_msprobe``.
    """
    return checked_config(file) if debugger == BUILTIN else load_config_for_msprobe(file)
