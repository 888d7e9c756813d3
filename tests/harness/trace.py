"""What a run of the actor did: events in order, and what came out of it."""

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from probe_patch.dump_format import Phase

Event: TypeAlias = tuple[str, ...]

# What the actor itself does. ("rollout",) is the call of the function that holds the phases; besides these there are
# ("switch", tag), the change to other weights, and ("clear_replay",), which follows old when routing is replayed.
ROLLOUT: Final[Event] = ("rollout",)
TRAIN_CRITIC: Final[Event] = ("train_critic",)
CALLS: Final[dict[Phase, Event]] = {
    "ref": ("compute_log_prob", "ref_"),
    "old": ("compute_log_prob", ""),
    "actor": ("train",),
}
PHASE_OF_CALL: Final[dict[Event, Phase]] = {call: phase for phase, call in CALLS.items()}

# What it asks of the probe.
PROBE_EVENTS: Final = frozenset({"init", "enter", "start", "stop", "finish", "step"})


@dataclass
class Recorder:
    """Where the stand-ins write while the actor runs."""

    events: list[Event] = field(default_factory=list)
    imports: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Trace:
    """One finished run of ``init`` and ``train``.

    Attributes:
        events: everything recorded, in order.
        raised: the exception that came out of ``init`` or ``train``, or None.
        failure: the exception that the scenario had a phase raise, or None; the same object as ``raised`` if nothing
            between the phase and the caller replaced it.
        imports: absolute names of the modules that the file asked for, in order.
        actor_class: the class as the file defined it.
        actor: the instance that ran, of a subclass of ``actor_class``.
    """

    events: tuple[Event, ...]
    raised: Exception | None
    failure: Exception | None
    imports: tuple[str, ...]
    actor_class: type
    actor: object

    @property
    def sequence(self) -> tuple[Event, ...]:
        """What the probe was asked and the phases it was asked about: ``events`` without the actor's other doings."""
        return tuple(event for event in self.events if event[0] in PROBE_EVENTS or event in PHASE_OF_CALL)

    @property
    def own_events(self) -> tuple[Event, ...]:
        """What the actor did, whether or not a probe watched."""
        return tuple(event for event in self.events if event[0] not in PROBE_EVENTS)

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The phases that were reached, in order; calls with other prefixes, and the critic's training, are none."""
        return tuple(PHASE_OF_CALL[event] for event in self.events if event in PHASE_OF_CALL)

    @property
    def debugger(self) -> object:
        """The actor's ``debugger``.

        Raises:
            AttributeError: it has none, because the file is not patched, or the dump is off.
        """
        return getattr(self.actor, "debugger")  # noqa: B009  # mypy knows no such attribute
