"""Which settings of a running server make its dump partial, by the table that ``launch-args`` prints from."""

import os
import sys

from packaging.version import InvalidVersion, Version

from probe_patch.launch.advice import flag_through, settings_of
from probe_patch.launch.server import Server
from probe_patch.launch.setting import Setting
from probe_patch.launch.settings import SETTINGS


def partial_dump_warnings(server_args: object, modes: frozenset[str], level: str) -> tuple[str, ...]:
    """One sentence per setting that would make the dump silently partial, naming what to pass or to leave out.

    Which flags the server has is read off its fields. Never raises.

    Args:
        server_args: SGLang's ``ServerArgs`` of any version, or nothing like it.
        modes: the modes of forwards that are dumped (``extend``, ``decode``, ``all``).
        level: the level of the dump in config.json.
    """
    server = Server(server_args, modes, os.environ)
    fields = frozenset(row.field for row in SETTINGS if row.field is not None and server.has(row.field))
    relevant = (setting for setting in settings_of(_running_version(), fields) if setting.matters_to(modes, level))
    return tuple(_sentence(setting) for setting in relevant if _is_partial(setting, server))


def _running_version() -> Version | None:
    """What the SGLang that this process has imported says of itself; None where it has none, or says nothing."""
    try:
        return Version(sys.modules["sglang"].__version__)
    except (KeyError, AttributeError, TypeError, InvalidVersion):
        return None


def _is_partial(setting: Setting, server: Server) -> bool:
    try:
        return setting.partial is not None and setting.partial(server)
    except Exception:  # a value that cannot be looked at; the run goes on, and so do the other checks
        return False


def _sentence(setting: Setting) -> str:
    return f"{setting.state}: {setting.effect}; {_what_to_do(setting)}"


def _what_to_do(setting: Setting) -> str:
    if setting.words:
        return f"pass {' '.join(setting.words)} (through slime: {_through_slime(setting.words)})"
    if setting.avoid is not None:
        return f"leave out {setting.avoid} (through slime: {_through_slime((setting.avoid,))})"
    if setting.environment is not None:
        return f"set {'='.join(setting.environment)}"
    return setting.remedy


def _through_slime(words: tuple[str, ...]) -> str:
    return " ".join(flag_through("slime", word) for word in words)
