"""Which forwards count."""

import pytest

from probe_patch.config import Config
from probe_patch.dump_format import PdRole
from probe_patch.runtime.sglang.selection import Selection

EXTENDS = ("EXTEND", "MIXED", "SPLIT_PREFILL", "DLLM_EXTEND", "PREFILL")
SPECULATIVE = ("TARGET_VERIFY", "DRAFT_EXTEND", "DRAFT_EXTEND_V2")
RUN_NOTHING = ("IDLE", "PREBUILT", "DUMMY_FIRST")

COUNTED = {
    frozenset({"extend"}): {*EXTENDS},
    frozenset({"decode"}): {"DECODE"},
    frozenset({"extend", "decode"}): {*EXTENDS, "DECODE"},
    frozenset({"all"}): {*EXTENDS, "DECODE", *SPECULATIVE, "UNKNOWN"},
}


@pytest.mark.parametrize("modes", COUNTED, ids=lambda modes: "+".join(sorted(modes)))
def test_speculative_and_idle_forwards_never_count_as_extend(modes: frozenset[str]) -> None:
    selection = Selection(modes, min_tokens=2, max_forwards=None)  # type: ignore[arg-type]
    everything = {*EXTENDS, "DECODE", *SPECULATIVE, *RUN_NOTHING, "UNKNOWN"}
    assert {mode for mode in everything if selection.reason_to_skip(mode, 8) is None} == COUNTED[modes]


@pytest.mark.parametrize(
    ("mode", "tokens", "reason"),
    [
        ("EXTEND", 1, "few_tokens"),
        ("EXTEND", 2, None),
        ("MIXED", 1, "few_tokens"),
        ("DECODE", 1, None),
        ("TARGET_VERIFY", 1, None),
        ("IDLE", 0, "idle"),
    ],
)
def test_the_least_number_of_tokens_is_for_extends_alone(mode: str, tokens: int, reason: str | None) -> None:
    assert Selection(frozenset({"all"}), min_tokens=2, max_forwards=None).reason_to_skip(mode, tokens) == reason


ALL_MODES: Selection = Selection(frozenset({"all"}), 2, None)


@pytest.mark.parametrize(
    ("rollout", "role", "expected"),
    [
        ({}, "null", Selection(frozenset({"extend"}), 2, None)),
        ({}, "prefill", Selection(frozenset({"extend"}), 2, None)),
        ({}, "decode", Selection(frozenset({"decode"}), 2, None)),
        ({"modes": ["all"]}, "decode", ALL_MODES),
        ({"modes": ["extend"], "max_forwards": 3}, "decode", Selection(frozenset({"decode"}), 2, 3)),
        ({"decode": {"max_forwards": 3}}, "decode", Selection(frozenset({"decode"}), 2, 3)),
        ({"decode": {"max_forwards": 3}}, "prefill", Selection(frozenset({"extend"}), 2, None)),
        ({"min_tokens": 5, "prefill": {"modes": ["all"]}}, "prefill", Selection(frozenset({"all"}), 5, None)),
        ({"min_tokens": 5, "prefill": {"min_tokens": 7}}, "null", Selection(frozenset({"extend"}), 5, None)),
        ({"decode": {"modes": ["extend"]}}, "decode", Selection(frozenset({"extend"}), 2, None)),
    ],
)
def test_one_config_serves_prefill_and_decode_servers(
    rollout: dict[str, object], role: PdRole, expected: Selection
) -> None:
    config = Config.model_validate({"dump_path": "/dump", "rollout": rollout})
    assert Selection.of(config.rollout.for_role(role)) == expected
