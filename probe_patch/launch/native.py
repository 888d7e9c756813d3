"""What is said of an SGLang that has a dump hook of its own, 0.5.11 and later, and so needs no patch."""

from collections.abc import Iterable

from packaging.version import Version

from probe_patch.launch.advice import Advice, advice, is_too_old
from probe_patch.launch.settings import FIRST_NATIVE, HOOK_FIELD


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
    alone, through_slime = (advice(known, "sglang", modes, fields=fields), advice(known, "slime", modes, fields=fields))
    return (
        f"SGLang {_name(version)} needs no patch: where probe-patch is installed, its plugin "
        f"dumps with DUMP_ON=1; start the server with {words_of(alone)}, or slime with {words_of(through_slime)} "
        "(probe-patch launch-args says why); --msprobe-dump-config is msProbe's own hook, leave it out"
    )


def words_of(advices: Iterable[Advice]) -> str:
    """All words to pass, as one line of a command."""
    return " ".join(word for each in advices for word in each.words)


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
