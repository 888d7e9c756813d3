"""Every era, patched: which forwards are dumped for what config.json asks, and that the same bits are computed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.end_to_end.sglang.jobs import Job, Outcome, dumping, forwards_in, modes_in, patched_sglang, run_jobs
from tests.fixtures.sglang.runs import Plan
from tests.fixtures.sglang.trees import PATCHED, VERSIONS, lay_out_sglang

# Runs EXTEND of 1 token, 6, DECODE of 2, 2, EXTEND of 1, 3, DECODE of 1.
SERVING = Plan(
    [
        {"do": "health"},
        {"do": "generate", "prompts": [[1, 2, 3, 4], [5, 6]], "new_tokens": 3},
        {"do": "health"},
        {"do": "generate", "prompts": [[7, 8, 9]], "new_tokens": 2},
    ]
)
E6, E3, E1, D2, D1 = ("EXTEND", 6), ("EXTEND", 3), ("EXTEND", 1), ("DECODE", 2), ("DECODE", 1)


@dataclass(frozen=True)
class Asked:
    """A section ``rollout``, other keys of config.json, and the dumps that must come of SERVING: step, mode, tokens."""

    rollout: Mapping[str, object]
    dumped: list[tuple[int, str, int]]
    config: Mapping[str, object] = field(default_factory=dict)


SELECTIONS = {
    "default": Asked({}, [(0, *E6), (1, *E3)]),
    "decode": Asked({"modes": ["decode"]}, [(0, *D2), (1, *D2), (2, *D1)]),
    "both": Asked({"modes": ["extend", "decode"]}, [(0, *E6), (1, *D2), (2, *D2), (3, *E3), (4, *D1)]),
    "all": Asked({"modes": ["all"]}, [(0, *E6), (1, *D2), (2, *D2), (3, *E3), (4, *D1)]),
    "health too": Asked({"min_tokens": 1}, [(0, *E1), (1, *E6), (2, *E1), (3, *E3)]),
    "long prompts": Asked({"min_tokens": 4}, [(0, *E6)]),
    "none long enough": Asked({"min_tokens": 7}, []),
    "first": Asked({"max_forwards": 1}, [(0, *E6)]),
    "first three": Asked({"modes": ["all"], "max_forwards": 3}, [(0, *E6), (1, *D2), (2, *D2)]),
    "step 1": Asked({}, [(1, *E3)], {"step": [1]}),
    "steps 0 and 3": Asked({"modes": ["all"]}, [(0, *E6), (3, *E3)], {"step": [0, 3]}),
    "first of steps 1 and 2": Asked({"modes": ["all"], "max_forwards": 1}, [(1, *D2)], {"step": [1, 2]}),
    "another rank": Asked({}, [], {"rank": [1]}),
}
SWITCHED_OFF = {"unset": {}, "off": {"DUMP_ON": "0"}}

OF_EACH_LAYER = (
    "TinyDecoderLayer",
    "input_layernorm.RMSNorm",
    "self_attn.TinyAttention",
    "self_attn.qkv_proj.Linear",
    "self_attn.attn.RadixAttention",
    "self_attn.o_proj.Linear",
    "post_attention_layernorm.RMSNorm",
    "mlp.TinyMLP",
    "mlp.gate_up_proj.Linear",
    "mlp.down_proj.Linear",
)
# Neither the root, whose forward is called directly, nor lm_head, which is used as a weight.
CALLED = {
    "Module.model.embed_tokens.Embedding",
    "Module.model.norm.RMSNorm",
    "Module.model.TinyModel",
    "Module.logits_processor.LogitsProcessor",
    *(f"Module.model.layers.{layer}.{name}" for layer in range(3) for name in OF_EACH_LAYER),
}

each_era = pytest.mark.parametrize("era", PATCHED)
each_selection = pytest.mark.parametrize("selection", SELECTIONS)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("selection")


@pytest.fixture(scope="module")
def outcomes(scratch: Path) -> dict[str, Outcome]:
    return run_jobs({name: job for era in PATCHED for name, job in _jobs(era, scratch)}, scratch / "results")


def _jobs(era: str, scratch: Path) -> Iterator[tuple[str, Job]]:
    yield f"{era}: unpatched", Job(lay_out_sglang(era, scratch / "plain" / era), SERVING)
    patched = patched_sglang(era, scratch / "patched" / era)
    for name, env in SWITCHED_OFF.items():
        yield f"{era}: {name}", Job(patched, SERVING, env)
    for name, asked in SELECTIONS.items():
        yield f"{era}: {name}", Job(patched, SERVING, dumping(_dump(scratch, era, name), asked.rollout, **asked.config))


def _dump(scratch: Path, era: str, selection: str) -> Path:
    return scratch / "dumps" / era / selection.replace(" ", "_")


@each_era
@each_selection
def test_exactly_the_forwards_asked_for_are_dumped(
    outcomes: dict[str, Outcome], scratch: Path, era: str, selection: str
) -> None:
    assert modes_in(_dump(scratch, era, selection)) == SELECTIONS[selection].dumped


@each_era
@each_selection
def test_the_same_bits_are_computed_as_unpatched(outcomes: dict[str, Outcome], era: str, selection: str) -> None:
    on, unpatched = outcomes[f"{era}: {selection}"].served, outcomes[f"{era}: unpatched"].served
    assert on.numbers() == unpatched.numbers()
    assert on.hooks == 0
    assert on.originals == {"__init__": False, "forward": False}
    assert "probe_patch.runtime.sglang" in on.ours


@each_era
@pytest.mark.parametrize("switch", SWITCHED_OFF)
def test_switched_off_the_functions_are_the_originals_and_nothing_of_ours_is_there(
    outcomes: dict[str, Outcome], era: str, switch: str
) -> None:
    off, unpatched = outcomes[f"{era}: {switch}"], outcomes[f"{era}: unpatched"]
    assert off.served == unpatched.served
    assert off.served.originals == {"__init__": True, "forward": True}
    assert off.served.ours == ()
    assert off.said == ()


@each_era
def test_a_dump_holds_every_module_call_once(outcomes: dict[str, Outcome], scratch: Path, era: str) -> None:
    for dump in forwards_in(_dump(scratch, era, "all")):
        assert set(dump.data) == {f"{module}.forward.0" for module in CALLED}
        assert set(dump.construct) == set(dump.data)
        assert (dump.meta["problems"], dump.meta["ended_by_exception"]) == ([], None)
        assert dump.meta["target_versions"] == {"sglang": VERSIONS[era]}


@each_era
def test_skipped_forwards_are_counted(outcomes: dict[str, Outcome], scratch: Path, era: str) -> None:
    """Those before each dump: a health probe; then two decode steps and another health probe more."""
    skipped = [dump.meta["skipped"] for dump in forwards_in(_dump(scratch, era, "default"))]
    assert skipped == [{"few_tokens": 1}, {"few_tokens": 2, "decode": 2}]
