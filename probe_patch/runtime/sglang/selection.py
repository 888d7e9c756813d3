"""Which forwards of an inference server count, by their mode and their number of tokens."""

from dataclasses import dataclass
from typing import Final

from probe_patch.config.rollout import ForwardKind, ForwardsSection

FEW_TOKENS: Final = "few_tokens"

# SGLang's own is_extend() takes in speculative modes too, and its signature differs between versions.
_EXTEND: Final = frozenset({"EXTEND", "MIXED", "SPLIT_PREFILL", "DLLM_EXTEND", "PREFILL"})
_DECODE: Final = frozenset({"DECODE"})
_RUNS_NOTHING: Final = frozenset({"IDLE", "PREBUILT", "DUMMY_FIRST"})


@dataclass(frozen=True)
class Selection:
    """What config.json asks of one kind of server."""

    modes: frozenset[ForwardKind]
    min_tokens: int
    max_forwards: int | None

    @classmethod
    def of(cls, section: ForwardsSection) -> "Selection":
        return cls(frozenset(section.modes), section.min_tokens, section.max_forwards)

    def reason_to_skip(self, mode: str, tokens: int) -> str | None:
        """Why a forward does not count: ``few_tokens``, or its mode in lower case. None if it counts.

        Args:
            mode: the name of a member of SGLang's ``ForwardMode``.
            tokens: how many tokens go through the model.
        """
        if mode in _RUNS_NOTHING:
            return mode.lower()
        if mode in _EXTEND:
            if not self.modes & {"extend", "all"}:
                return mode.lower()
            return FEW_TOKENS if tokens < self.min_tokens else None
        wanted = "all" in self.modes or (mode in _DECODE and "decode" in self.modes)
        return None if wanted else mode.lower()
