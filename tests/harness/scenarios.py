"""The training configurations under which the actor is run."""

from dataclasses import dataclass, replace
from typing import Literal

from probe_patch.dump_format import Phase
from tests.harness.trace import CALLS


@dataclass(frozen=True)
class Scenario:
    """One configuration of slime, in slime's own words, and where it fails.

    Attributes:
        id: its name in test reports.
        role: what ``init`` is told to be.
        with_ref: whether a reference model is loaded.
        with_opd_teacher: whether a teacher is loaded for on-policy distillation (versions that know one).
        compute_advantages_and_returns: False for supervised fine-tuning, which needs no log-probs before training.
        loss_type: ``policy_loss`` or ``sft_loss``.
        kl_coef: weight of the KL term in the reward.
        use_rollout_logprobs: take the old log-probs from the rollout.
        use_routing_replay: replay the rollout's expert routing in the old pass and in training (versions that can).
        debug_rollout_only: generate, never train.
        steps_per_rollout: optimizer steps made from one rollout.
        fail_in: the phase whose computation raises, or None.
    """

    id: str
    role: Literal["actor", "critic"] = "actor"
    with_ref: bool = True
    with_opd_teacher: bool = False
    compute_advantages_and_returns: bool = True
    loss_type: Literal["policy_loss", "sft_loss"] = "policy_loss"
    kl_coef: float = 0.0
    use_rollout_logprobs: bool = False
    use_routing_replay: bool = False
    debug_rollout_only: bool = False
    steps_per_rollout: int = 1
    fail_in: Phase | None = None


DEFAULT = Scenario("default", kl_coef=0.1)

SCENARIOS: tuple[Scenario, ...] = (
    DEFAULT,
    Scenario("one-step"),
    Scenario("two-steps", steps_per_rollout=2),
    Scenario("rollout-logprobs", use_rollout_logprobs=True),
    Scenario("no-ref", with_ref=False, kl_coef=0.1),
    Scenario("teacher", with_opd_teacher=True, kl_coef=0.1),
    Scenario("routing-replay", use_routing_replay=True, kl_coef=0.1),
    Scenario("sft", with_ref=False, compute_advantages_and_returns=False, loss_type="sft_loss"),
    Scenario("rollout-only", debug_rollout_only=True),
    Scenario("critic", role="critic"),
)

FAILING_SCENARIOS: tuple[Scenario, ...] = tuple(replace(DEFAULT, id=f"{phase}-fails", fail_in=phase) for phase in CALLS)
