"""Stand-ins for the helpers of slime that the actor cannot run without, or whose calls are the events to record."""

import functools
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from probe_patch.dump_format import Phase
from tests.harness.actor_source import ActorSource
from tests.harness.scenarios import Scenario
from tests.harness.trace import PHASE_OF_CALL, TRAIN_CRITIC, Recorder

Function = Callable[..., Any]

# Options that are not switched off by being False.
_OPTIONS: Mapping[str, object] = {
    "advantage_estimator": "grpo",
    "megatron_to_hf_mode": "raw",
    "num_gpus_per_node": 1,
    "profile_target": (),
    "ref_update_interval": None,
    "rollout_data_postprocess_path": None,
    "save_debug_train_data": None,
    "save_hf": None,
    "train_memory_margin_bytes": 0,
    "update_weight_mode": "full",
    "update_weight_transport": "nccl",
    "ref_ckpt_step": None,
    "opd_teacher_ckpt_step": None,
    "profile_step_end": None,
    "distributed_timeout_minutes": 1,
}


class Arguments(Namespace):
    """slime's parsed command line: what the scenario sets, and everything else off."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return _OPTIONS.get(name, False)


def arguments(scenario: Scenario) -> Arguments:
    """The command line of a scenario."""
    return Arguments(
        compute_advantages_and_returns=scenario.compute_advantages_and_returns,
        debug_rollout_only=scenario.debug_rollout_only,
        kl_coef=scenario.kl_coef,
        loss_type=scenario.loss_type,
        use_critic=scenario.role == "critic",
        use_kl_loss=scenario.with_ref,
        use_rollout_logprobs=scenario.use_rollout_logprobs,
        use_rollout_routing_replay=scenario.use_routing_replay,
        use_routing_replay=scenario.use_routing_replay,
    )


class TrainRayActor:
    """slime's base class of the actors: ``init`` only keeps what it is told."""

    def init(self, args: Namespace, role: str, with_ref: bool = False, with_opd_teacher: bool = False) -> None:
        self.args = args
        self.role = role
        self.with_ref = with_ref
        self.with_opd_teacher = with_opd_teacher


class TensorBackuper:
    """Keeps the names of the weights that were put aside; there are no weights."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.backup_tags: set[str] = set()

    def backup(self, tag: str) -> None:
        self.backup_tags.add(tag)

    def restore(self, tag: str) -> None:
        self._recorder.events.append(("switch", tag))


class ParallelState:
    """A process that is alone: every rank is 0 and every size 1."""

    rank = 0
    size = 1

    def __getattr__(self, name: str) -> "ParallelState":
        return self


def stand_ins(source: ActorSource, scenario: Scenario, failure: Exception, recorder: Recorder) -> dict[str, object]:
    """The stand-ins by the name under which the actor imports them, whatever the module.

    ``failure`` is raised by the computation of the phase ``scenario.fail_in``.
    """

    # As many steps as the scenario wants, none of which has data.
    microbatches = [0] * scenario.steps_per_rollout

    def fail_if_asked(phase: Phase | None) -> None:
        if phase is not None and phase == scenario.fail_in:
            raise failure

    def forward_only(
        *positional: object, store_prefix: str | None = None, **options: object
    ) -> dict[str, list[object]]:
        if store_prefix is not None:
            fail_if_asked(PHASE_OF_CALL.get(("compute_log_prob", store_prefix)))
            return {f"{store_prefix}log_probs": []}
        return {"values": []}

    def train(*positional: object, **options: object) -> None:
        # Only the caller's name tells the actor's training from the critic's: the arguments are the same.
        if sys._getframe(1).f_code.co_name == "train_critic":
            recorder.events.append(TRAIN_CRITIC)
            return
        recorder.events.append(("train",))
        fail_if_asked("actor")

    def rollout_data(*positional: object, **options: object) -> dict[str, object]:
        return {
            "tokens": [],
            "loss_masks": [],
            "rollout_routed_experts": [],
            "num_microbatches": microbatches,
            "global_batch_sizes": microbatches,
        }

    def get_data_iterator(*positional: object, **options: object) -> object:
        iterator: list[object] = []
        pair = (iterator, microbatches)
        return {0: iterator, 2: pair, 4: pair + pair}[source.unpacked.get("get_data_iterator", 0)]

    def sync_actor_critic_data(*positional: object, **options: object) -> tuple[object, ...]:
        return ([],) * source.unpacked.get("sync_actor_critic_data", 0)

    return {
        "TensorBackuper": _Creates(lambda: TensorBackuper(recorder)),
        "TrainRayActor": TrainRayActor,
        "all_replay_managers": (),
        "clear_all_forward": lambda: recorder.events.append(("clear_replay",)),
        "forward_only": forward_only,
        "get_data_iterator": get_data_iterator,
        "get_parallel_state": ParallelState,
        "get_rank": lambda *group: 0,
        "get_rollout_data": rollout_data,
        "get_world_size": lambda *group: 1,
        "get_virtual_pipeline_model_parallel_world_size": lambda: None,
        "initialize_model_and_optimizer": lambda *positional: ([], None, None, 0),
        "inverse_timer": timer,
        "load_checkpoint": lambda *positional, **options: (0, 0),
        "no_grad": lambda: _unchanged,
        "process_rollout_data": rollout_data,
        "sync_actor_critic_data": sync_actor_critic_data,
        "timer": timer,
        "train": train,
        "with_defer": with_defer,
    }


class _Creates:
    def __init__(self, make: Callable[[], object]) -> None:
        self._make = make

    def create(self, **options: object) -> object:
        return self._make()


def timer(what: str | Function) -> Function | AbstractContextManager[None]:
    """slime's timer, which is a decorator and a context; it times nothing."""
    return nullcontext() if isinstance(what, str) else what


def with_defer(deferred: Callable[[], object]) -> Callable[[Function], Function]:
    """Decorator: call ``deferred`` when the function ends, however it ends."""

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def call(*positional: object, **options: object) -> object:
            try:
                return function(*positional, **options)
            finally:
                deferred()

        return call

    return decorate


def _unchanged(function: Function) -> Function:
    return function
