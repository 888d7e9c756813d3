"""What we need to know of a config.json that msProbe itself reads; what else is in it is between it and its author."""

from pathlib import Path

from probe_patch.config.load import decode, read_text, validated
from probe_patch.config.model import DumpPath, Indexes
from probe_patch.config.rollout import RolloutSection
from probe_patch.config.sections import Section


class ConfigForMsprobe(Section):
    """A config.json, as far as we act on it: where the dump goes, and which steps, ranks and forwards are in it."""

    dump_path: DumpPath
    rank: Indexes = ()
    step: Indexes = ()
    level: str = "L1"
    dump_enable: bool | None = None
    rollout: RolloutSection = RolloutSection()


def load_config_for_msprobe(path: Path) -> ConfigForMsprobe:
    """Read a config.json without judging what only msProbe serves.

    Raises:
        ConfigError: the file cannot be read, is no JSON object, or has one of these keys wrong.
    """
    return validated(ConfigForMsprobe, decode(read_text(path), str(path)), str(path))
