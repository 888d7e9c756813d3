"""The shape of a row of the table: one setting of SGLang that decides whether a dump is complete."""

from collections.abc import Callable
from dataclasses import dataclass

from packaging.version import Version

from probe_patch.launch.server import Server

EXTEND = frozenset({"extend"})
DECODE = frozenset({"decode"})
BOTH = EXTEND | DECODE
EVERY_LEVEL = frozenset({"L0", "L1", "L2", "mix", "debug"})


@dataclass(frozen=True)
class Setting:
    """One setting, in a form that lasts until the next one of its concern.

    Attributes:
        concern: what it is about; the forms that one concern took in different releases share it.
        since: the first release with this form.
        effect: what happens to a dump without it: a clause.
        field: the field of ``ServerArgs`` that it is; None where it is not one.
        words: what to pass; empty where nothing can be.
        environment: the variable to set, and its value.
        avoid: the flag that must not be passed.
        remedy: what else to do, where there is neither of these.
        remark: what else there is to know before passing it.
        slime: what slime does about it by itself; None where it leaves it to its user.
        modes: the modes of forwards that it bears on.
        levels: the levels of a dump that it matters to.
        state: how it is said of a running server that it is not as it should be.
        partial: whether it would make the dump of a running server partial; never, where this cannot be told.
    """

    concern: str
    since: str
    effect: str
    field: str | None = None
    words: tuple[str, ...] = ()
    environment: tuple[str, str] | None = None
    avoid: str | None = None
    remedy: str = ""
    remark: str = ""
    slime: str | None = None
    modes: frozenset[str] = BOTH
    levels: frozenset[str] = EVERY_LEVEL
    state: str = ""
    partial: Callable[[Server], bool] | None = None

    def began_by(self, version: Version) -> bool:
        """Whether a release comes no earlier than this form; a local part (``+cu129``) makes no other release of it."""
        return Version(self.since) <= Version(version.public)

    def matters_to(self, modes: frozenset[str], level: str) -> bool:
        """Whether it bears on a dump of forwards in ``modes`` at ``level``."""
        return level in self.levels and ("all" in modes or bool(self.modes & modes))
