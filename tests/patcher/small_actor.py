"""The smallest actor that has every anchor: what most of these tests patch."""

SMALL_ACTOR = '''"""A small actor."""
from __future__ import annotations

import os

from slime.ray.train_actor import TrainRayActor
from slime.utils.tensor_backper import TensorBackuper
from slime.utils.timer import Timer, inverse_timer, timer, with_defer

from .model import forward_only, train


class MegatronTrainRayActor(TrainRayActor):
    @with_defer(lambda: Timer().start("train_wait"))
    def init(self, args, role, with_ref=False):
        """Build the model."""
        if args.debug_rollout_only:
            self.args = args
            return 0
        super().init(args, role, with_ref)
        self.model = ["chunk"]
        self.weights_backuper = TensorBackuper.create(source_getter=lambda: self.model, single_tag=None)
        if with_ref:
            self.weights_backuper.backup("ref")
        return 1

    def _switch_model(self, tag):
        self.weights_backuper.restore(tag)

    def compute_log_prob(self, data_iterator, num_microbatches, store_prefix=""):
        return forward_only(self.model, data_iterator, num_microbatches, store_prefix=store_prefix)

    def train(self, rollout_id, rollout_data_ref):
        if self.args.debug_rollout_only:
            return None
        return self.train_actor(rollout_id, {})

    def train_actor(self, rollout_id, rollout_data):
        data_iterator, num_microbatches = ["it"], [1]
        with inverse_timer("train_wait"), timer("train"):
            if self.args.compute_advantages_and_returns:
                if "ref" in self.weights_backuper.backup_tags:
                    self._switch_model("ref")
                    rollout_data.update(
                        self.compute_log_prob(
                            data_iterator,
                            num_microbatches,
                            store_prefix="ref_",
                        )
                    )
                rollout_data.update(self.compute_log_prob(data_iterator, num_microbatches, store_prefix="teacher_"))
                if not self.args.use_rollout_logprobs:
                    os.environ["ROUTING_REPLAY_STAGE"] = "record"
                    rollout_data.update(self.compute_log_prob(data_iterator, num_microbatches, store_prefix=""))
            with timer("actor_train"):
                train(rollout_id, self.model, data_iterator, num_microbatches)
'''


def edited(*edits: tuple[str, str]) -> bytes:
    """The small actor with pieces of its text replaced, each of which must be there exactly once."""
    source = SMALL_ACTOR
    for old, new in edits:
        assert source.count(old) == 1, f"{old!r} is there {source.count(old)} times"
        source = source.replace(old, new)
    return source.encode()
