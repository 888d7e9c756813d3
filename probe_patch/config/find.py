"""Which config.json a process reads."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias

Side: TypeAlias = Literal["train", "rollout"]

_VARIABLES: Final[dict[Side, tuple[str, ...]]] = {
    "train": ("PROBE_PATCH_TRAIN_CONFIG", "PROBE_PATCH_CONFIG", "MSPROBE_CONFIG_PATH"),
    "rollout": ("PROBE_PATCH_ROLLOUT_CONFIG", "PROBE_PATCH_CONFIG", "MSPROBE_GENERATE_CONFIG"),
}


def find_config(environ: Mapping[str, str], side: Side, baked: str | None) -> Path | None:
    """The path that the environment names for this side, else the one baked in at apply time, else None.

    An empty variable counts as unset. Whether the file exists is not looked at here.
    """
    named = next((environ[name] for name in _VARIABLES[side] if environ.get(name)), None)
    path = named or baked
    return Path(path) if path else None
