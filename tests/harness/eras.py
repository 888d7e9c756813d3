"""The versions of slime's actor, the eras they fall into, and the phases that run in each era and scenario.

The versions are those on slime's main branch from 2025-07-18 (the file's first day at its present place) to 2026-08-21.
``slime_actor_versions.txt`` lists them in order: the git blob, and the day it first appeared.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

# Each era begins with this blob and ends before the next one's.
ERAS: Final = (
    ("E3", "5cf75f49"),  # the phases are in train; old passes no store_prefix
    ("E4", "291d9951"),  # old passes store_prefix=""
    ("E5", "5b1bd9bb"),  # rollout_data.update(self.compute_log_prob(…))
    ("E6", "f187582a"),  # train_actor is split out
    ("E7", "68195a72"),  # log_probs = self.compute_log_prob(…)
    ("E8", "07d26c08"),  # rollout_data.update(…) again; routing replay
    ("E9", "9f50ad40"),  # monkey_patch_torch_dist() is the first statement of init
    ("E10", "1d8f660b"),  # @with_defer on init
    ("E11", "e1abc67a"),  # old is guarded by use_rollout_logprobs
    ("E12", "21c87265"),  # _switch_model("ref") before the call
    ("E13", "ad436082"),  # a teacher_ call between ref and old
    ("E14", "af4880cf"),  # init returns at once under debug_rollout_only
    ("E15", "586f88de"),  # old is skipped where the loss can reuse the log-probs
)

# "-": the function that holds the phases is not called; "none": it is, and no phase runs.
_PHASES: Final = """
    scenario          E3-E5          E6-E10         E11-E14        E15
    default           ref+old+actor  ref+old+actor  ref+old+actor  ref+old+actor
    one-step          ref+old+actor  ref+old+actor  ref+old+actor  ref+actor
    two-steps         ref+old+actor  ref+old+actor  ref+old+actor  ref+old+actor
    rollout-logprobs  ref+old+actor  ref+old+actor  ref+actor      ref+actor
    no-ref            old+actor      old+actor      old+actor      old+actor
    teacher           ref+old+actor  ref+old+actor  ref+old+actor  ref+old+actor
    routing-replay    ref+old+actor  ref+old+actor  ref+old+actor  ref+old+actor
    sft               actor          actor          actor          actor
    rollout-only      none           -              -              -
    critic            ref+old+actor  -              -              -
    ref-fails         ref            ref            ref            ref
    old-fails         ref+old        ref+old        ref+old        ref+old
    actor-fails       ref+old+actor  ref+old+actor  ref+old+actor  ref+old+actor
"""

# Scenarios in which a version of slime raises by itself, patched or not: train() asks for self.parallel_state, which
# init has not set when it returns early.
RAISES_BY_ITSELF: Final = {
    ("rollout-only", blob): AttributeError for blob in ("f5c501fa", "9406983a", "a7712a47", "c772d1a2", "26114ac3")
}


@dataclass(frozen=True)
class ActorVersion:
    """One version of ``slime/backends/megatron_utils/actor.py``: its git blob, its first day (ISO), its era."""

    blob: str
    date: str
    era: str

    @property
    def id(self) -> str:
        return f"{self.era}-{self.date}-{self.blob[:8]}"


def actor_versions() -> tuple[ActorVersion, ...]:
    """All versions, oldest first."""
    first_blobs = {blob: era for era, blob in ERAS}
    versions: list[ActorVersion] = []
    for line in Path(__file__).with_name("slime_actor_versions.txt").read_text().splitlines():
        blob, date = line.split()
        era = first_blobs.get(blob[:8]) or versions[-1].era
        versions.append(ActorVersion(blob, date, era))
    return tuple(versions)


def first_of_each_era() -> tuple[ActorVersion, ...]:
    """One version per era, oldest first."""
    return tuple(next(version for version in actor_versions() if version.era == era) for era, _ in ERAS)


def expected_phases(era: str, scenario_id: str) -> str:
    """The phases that run, joined by ``+``; ``none`` and ``-`` as in the table above."""
    header, *rows = [line.split() for line in _PHASES.strip().splitlines()]
    number = int(era[1:])
    column = next(
        index for index, eras in enumerate(header) if eras[0] == "E" and number <= int(eras.rpartition("E")[2])
    )
    return next(row[column] for row in rows if row[0] == scenario_id)
