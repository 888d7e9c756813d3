"""msProbe's config.json as probe-patch reads it: shared by the command line and the runtime, free of torch."""

from probe_patch.config.find import Side, find_config
from probe_patch.config.for_msprobe import ConfigForMsprobe, load_config_for_msprobe
from probe_patch.config.load import LoadedConfig, Overrides, default_config, default_text, load_config, parse_config
from probe_patch.config.model import Config
from probe_patch.config.starter import starter_config

__all__ = [
    "Config",
    "ConfigForMsprobe",
    "LoadedConfig",
    "Overrides",
    "Side",
    "default_config",
    "default_text",
    "find_config",
    "load_config",
    "load_config_for_msprobe",
    "parse_config",
    "starter_config",
]
