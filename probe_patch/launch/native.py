"""What is said of an SGLang that has a dump hook of its own, 0.5.11 and later, and so needs no patch."""

from collections.abc import Iterable
from typing import Final

from packaging.version import Version

from probe_patch.launch.advice import Advice, Via, advice, flag_through, is_too_old
from probe_patch.launch.settings import FIRST_NATIVE, HOOK_FIELD

_HOOK_FLAG: Final = "--msprobe-dump-config"


def native_sentence(
    version: str | None, modes: frozenset[str] = frozenset({"extend"}), fields: frozenset[str] | None = None
) -> str:
    """Why this SGLang is not patched, what dumps instead, and the flags for it, alone and through slime.

    Args:
        version: SGLang's; one that cannot be read, or that cannot be true, counts as the newest known, any other before
            0.5.11 (a development build that has the hook) as 0.5.11.
        modes: the modes of forwards that are dumped.
        fields: as for ``advice``.
    """
    known = _at_least_native(version)
    alone, through_slime = _flags(known, "sglang", modes, fields), _flags(known, "slime", modes, fields)
    return (
        f"SGLang {_name(version)} needs no patch: where probe-patch is installed, its plugin "
        f"dumps with DUMP_ON=1; start the server with {alone}, or slime with {through_slime} "
        "(probe-patch launch-args says why); --msprobe-dump-config is msProbe's own hook, leave it out"
    )


def hook_sentence(
    version: str | None, modes: frozenset[str] = frozenset({"extend"}), fields: frozenset[str] | None = None
) -> str:
    """How this SGLang drives msProbe without a patch of ours; the arguments are those of ``native_sentence``."""
    known = _at_least_native(version)
    alone, through_slime = _flags(known, "sglang", modes, fields), _flags(known, "slime", modes, fields)
    return (
        f"SGLang {_name(version)} drives msProbe by itself: start the server with {_HOOK_FLAG} CONFIG {alone}, or "
        f"slime with {flag_through('slime', _HOOK_FLAG)} CONFIG {through_slime}; with that flag the plugin of "
        "probe-patch stays out, and without it the plugin records, not msProbe"
    )


def words_of(advices: Iterable[Advice]) -> str:
    """All words to pass, as one line of a command."""
    return " ".join(word for each in advices for word in each.words)


def _flags(version: str | None, via: Via, modes: frozenset[str], fields: frozenset[str] | None) -> str:
    return words_of(advice(version, via, modes, fields=fields))


def is_native(version: str | None, fields: frozenset[str] | None) -> bool:
    """Whether this SGLang has a dump hook of its own: what its source says, or its number where there is no source."""
    if fields is not None:
        return HOOK_FIELD in fields
    return version is not None and Version(version) >= Version(FIRST_NATIVE)


def _name(version: str | None) -> str:
    if version is None:
        return f"{FIRST_NATIVE} or later"
    return f"{FIRST_NATIVE} or later (it calls itself {version})" if is_too_old(version) else version


def _at_least_native(version: str | None) -> str | None:
    if version is None or is_too_old(version):
        return None
    return version if Version(version) >= Version(FIRST_NATIVE) else FIRST_NATIVE
