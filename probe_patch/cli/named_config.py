"""A config.json that a command was given."""

from pathlib import Path

from probe_patch.cli.errors import say_note
from probe_patch.config import Config, load_config


def checked_config(file: Path) -> Config:
    """A config that the runtime accepts; what its author should know is said on stderr.

    Raises:
        ConfigError: as for ``load_config``.
    """
    loaded = load_config(file)
    for warning in loaded.warnings:
        say_note(f"{file}: {warning}")
    return loaded.config
