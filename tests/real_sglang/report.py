"""What the driver and the tests share: what is asked, and the plain records in which it is answered."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROMPTS = (tuple(range(5, 12)), tuple(range(30, 38)))
"""Of the two requests of every batch: 7 and 8 token ids."""

DECODE_STEPS = 3

# A scenario of the driver, and what its config.json holds besides the dump path.
CONFIGS: dict[str, dict[str, Any]] = {
    "default": {},
    "measured": {},
    "decode": {"step": [], "rollout": {"modes": ["decode"]}},
    "all": {"step": [], "rollout": {"modes": ["all"], "inputs": "hash"}},
    "capped": {"step": [], "rollout": {"modes": ["all"], "max_forwards": 2, "inputs": "none"}},
    "few_tokens": {"step": []},
    "raising": {"step": []},
    "reloaded": {"step": []},
    "two_runners": {"step": []},
    "generators": {"step": []},
    "functions": {"step": [], "level": "mix", "rollout": {"modes": ["all"]}},
    "draft": {"step": []},
    "draft_asked": {"step": [], "rollout": {"draft": True}},
}


@dataclass(frozen=True)
class Checkpoints:
    """Two folders with weights of one tiny Qwen2."""

    first: Path
    second: Path


@dataclass(frozen=True)
class Statistics:
    """Of one tensor, in float64: its shape, extremes, mean and L2 norm."""

    shape: tuple[int, ...]
    largest: float
    smallest: float
    mean: float
    norm: float


@dataclass(frozen=True)
class Measured:
    """One call of a module; what went in by position and what came out, null where that is no tensor."""

    name: str
    parent: str | None
    inputs: tuple[Statistics | None, ...]
    outputs: tuple[Statistics | None, ...]


@dataclass(frozen=True)
class Generated:
    """Of every forward: the next token of each request, the SHA-256 of the logits' bytes, and what was measured."""

    tokens: tuple[tuple[int, ...], ...]
    logits: tuple[str, ...]
    measured: tuple[tuple[Measured, ...], ...]


@dataclass(frozen=True)
class Outcome:
    """Of one scenario: the batches in turn, and what an exception that came through said."""

    generated: tuple[Generated, ...]
    error: str | None = None


@dataclass(frozen=True)
class Report:
    """Of one process; ``wrapped`` and ``runtime_loaded`` tell whether probe-patch had a part in it."""

    outcomes: dict[str, Outcome]
    wrapped: bool
    runtime_loaded: bool
