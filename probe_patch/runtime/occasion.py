"""Why something is recorded: what a dump's meta.json and files say beyond who wrote it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from probe_patch.dump_format import Phase

NOTHING_RAN: Final = "no module's forward ran; a compiled model or a graph replay runs without modules"


class Occasion(Protocol):
    """What one stretch of recording is about.

    Attributes:
        ends_by_itself: whether a stop belongs to each start, so that a start without one is a fault to be said.
        nothing_ran: the sentence for a recording in which no module ran.
    """

    @property
    def ends_by_itself(self) -> bool: ...

    @property
    def nothing_ran(self) -> str: ...

    def members(self) -> Mapping[str, object]:
        """Members of meta.json."""
        ...

    def files(self) -> Mapping[str, bytes]:
        """Further files of the dump's folder, by name."""
        ...


@dataclass(frozen=True)
class ByHand:
    """A debugger that somebody starts and stops himself, in a stretch of a program that may have a name.

    See ``PrecisionDebugger.phase``.
    """

    name: str | None = None
    ends_by_itself: bool = False
    nothing_ran: str = NOTHING_RAN

    def members(self) -> Mapping[str, object]:
        return {"phase": self.name, "rollout_id": None}

    def files(self) -> Mapping[str, bytes]:
        return {}


BY_HAND: Final = ByHand()


@dataclass(frozen=True)
class TrainingPhase:
    """One phase of one rollout in slime's actor."""

    phase: Phase
    rollout_id: int | None
    ends_by_itself: bool = True
    nothing_ran: str = NOTHING_RAN

    def members(self) -> Mapping[str, object]:
        return {"phase": self.phase, "rollout_id": self.rollout_id}

    def files(self) -> Mapping[str, bytes]:
        return {}
