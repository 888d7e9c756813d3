"""What to pass to an SGLang server, for a version of it and for what is dumped."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from packaging.version import InvalidVersion, Version

from probe_patch.errors import Refused, WrongUsage
from probe_patch.launch.setting import Setting
from probe_patch.launch.settings import OLDEST, SETTINGS

Via: TypeAlias = Literal["sglang", "slime"]

_SLIME_PREFIX = "--sglang-"


@dataclass(frozen=True)
class Advice:
    """One thing to pass, to set or to leave out.

    Attributes:
        concern: what it is about.
        words: the words to add to the command line, with slime's prefix where it goes through slime; may be empty.
        environment: a variable to set for the server, and its value; None where there is none.
        avoid: a flag that must not be passed, with slime's prefix likewise; None where there is none.
        reason: one sentence for the user, without a full stop.
    """

    concern: str
    words: tuple[str, ...]
    environment: tuple[str, str] | None
    avoid: str | None
    reason: str


def advice(
    version: str | None,
    via: Via,
    modes: frozenset[str] = frozenset({"extend"}),
    level: str = "L0",
    fields: frozenset[str] | None = None,
) -> tuple[Advice, ...]:
    """What a complete dump needs.

    Args:
        version: SGLang's; None stands for the newest one known.
        via: whose command line it is for; slime's has a prefix, and slime sets some of it by itself.
        modes: the modes of forwards that are dumped (``extend``, ``decode``, ``all``).
        level: the level of the dump in config.json.
        fields: the fields of ``ServerArgs`` in the source at hand, where it could be read. They decide which flags
            there are; the number of a development build does not.

    Raises:
        WrongUsage: ``version`` is no version.
        Refused: it is older than any that probe-patch knows, and there are no fields to go by instead.
    """
    release = None if version is None or (fields is not None and is_too_old(version)) else parse_version(version)
    return tuple(_advice(setting, via) for setting in settings_of(release, fields) if setting.matters_to(modes, level))


def parse_version(text: str) -> Version:
    """A version of SGLang that probe-patch knows.

    Raises:
        WrongUsage: ``text`` is no version.
        Refused: it is older than any that probe-patch knows.
    """
    try:
        version = Version(text)
    except InvalidVersion:
        raise WrongUsage(f'"{text}" is no version of SGLang; give one such as 0.5.9') from None
    if is_too_old(text):
        raise Refused(
            f"SGLang {text} is older than {OLDEST}, the first that probe-patch knows; use a later one, or, if it is a "
            "development build that only calls itself so, name its TREE to have its source read"
        )
    return version


def is_too_old(version: str) -> bool:
    """Whether it is older than any that probe-patch knows.

    A build without tags calls itself ``0.0.0.dev1+gdce8b0606`` or the like, whatever it is: its source says more.
    """
    return Version(version) < Version(OLDEST)


def settings_of(version: Version | None, fields: frozenset[str] | None = None) -> tuple[Setting, ...]:
    """The row in force of each concern, in the order of the table.

    Args:
        version: None stands for the newest one known.
        fields: as for ``advice``.
    """
    concerns = dict.fromkeys(setting.concern for setting in SETTINGS)
    found = (_in_force(concern, version, fields) for concern in concerns)
    return tuple(setting for setting in found if setting is not None)


def _in_force(concern: str, version: Version | None, fields: frozenset[str] | None) -> Setting | None:
    rows = [setting for setting in SETTINGS if setting.concern == concern]
    by_number = next((row for row in rows if version is None or row.began_by(version)), None)
    if fields is None:
        return by_number
    by_source = next((row for row in rows if row.field in fields), None)
    if by_source is not None:
        return by_number if by_number is not None and by_number.field == by_source.field else by_source
    if by_number is None or by_number.field is None:
        return by_number
    return next((row for row in rows if row.field is None), None)


def _advice(setting: Setting, via: Via) -> Advice:
    if via == "slime" and setting.slime is not None:
        return Advice(setting.concern, (), None, None, setting.slime)
    return Advice(
        concern=setting.concern,
        words=tuple(flag_through(via, word) for word in setting.words),
        environment=setting.environment,
        avoid=None if setting.avoid is None else flag_through(via, setting.avoid),
        reason="; ".join(part for part in (setting.effect, setting.remark, setting.remedy) if part),
    )


def flag_through(via: Via, word: str) -> str:
    """A word of SGLang's command line as ``via`` takes it: slime puts ``sglang-`` before the name of each flag."""
    return word.replace("--", _SLIME_PREFIX, 1) if via == "slime" and word.startswith("--") else word
