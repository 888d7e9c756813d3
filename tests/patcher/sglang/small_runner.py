"""The smallest model_runner.py that has every anchor, and what it does when it is run."""

from collections.abc import Callable
from typing import Any

from tests.harness.model_runner import Loaded, without_addresses

SMALL_RUNNER = '''"""A small model runner."""
from __future__ import annotations

import os

from sglang.srt.utils import timer, with_defer


class Output:
    """What forward returns."""


class ModelRunner:
    """Runs batches."""

    def __init__(self, model_config, gpu_id, is_draft_worker=False):
        """Load the model."""
        self.gpu_id = gpu_id
        self.is_draft_worker = is_draft_worker
        self.seen = []
        self.load_model()

    def load_model(self):
        self.model = lambda batch, mode: (batch, mode, self.gpu_id)

    def forward_extend(self, forward_batch):
        self.seen.append("extend")
        return self.model(forward_batch, "extend")

    def forward_decode(self, forward_batch):
        self.seen.append("decode")
        return self.model(forward_batch, "decode")

    def forward(self, forward_batch, skip_attn_backend_init=False):
        if forward_batch == "decode":
            return self.forward_decode(forward_batch)
        if forward_batch == "idle":
            raise ValueError(f"unsupported: {forward_batch}")
        return self.forward_extend(forward_batch)
'''

BATCHES = ("extend", "decode", "idle")


def edited(*edits: tuple[str, str]) -> bytes:
    """The small runner with pieces of its text replaced, each of which must be there exactly once."""
    source = SMALL_RUNNER
    for old, new in edits:
        assert source.count(old) == 1, f"{old!r} is there {source.count(old)} times"
        source = source.replace(old, new)
    return source.encode()


def same(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


STAND_INS = {"timer": same, "with_defer": lambda _deferred: same}


def run_batches(loaded: Loaded) -> tuple[str, ...]:
    """How making a runner and each of its forwards end, and what the runner saw."""
    made: list[Any] = []
    ends = [_end(lambda: made.append(loaded.runner("config", 3)))]
    for runner in made:
        ends += [_end(lambda runner=runner, batch=batch: runner.forward(batch)) for batch in BATCHES]  # type: ignore[misc]
        ends.append(repr(getattr(runner, "seen", None)))
    return tuple(without_addresses(end) for end in ends)


def _end(call: Callable[[], object]) -> str:
    try:
        return f"returned {call()!r}"
    except Exception as error:
        return f"raised {error!r}"
