"""What is no plain prefill or decode: idle, speculative and sliced forwards, draft models, graphs, several runners."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.end_to_end.sglang.jobs import (
    Job,
    Outcome,
    dumping,
    forwards_in,
    modes_in,
    patched_sglang,
    run_jobs,
)
from tests.fixtures.sglang.runs import Plan
from tests.fixtures.sglang.trees import PATCHED, lay_out_sglang

PROMPT = [[1, 2, 3, 4]]
GENERATE = {"do": "generate", "prompts": PROMPT, "new_tokens": 2}
SPECULATIVE_FROM_C = ["TARGET_VERIFY", "DRAFT_EXTEND"]
DRAFTED = [{**GENERATE, "worker": 1}, GENERATE]
TARGET_AND_DRAFT: tuple[dict[str, object], ...] = ({}, {"is_draft_worker": True})
DECODE_STEP = {"do": "forward", "mode": "DECODE", "prompts": [[3], [4]]}
BOTH_ROLES = {"prefill": {"max_forwards": 1}, "decode": {"modes": ["decode"], "max_forwards": 2}}

FROM_C = tuple(PATCHED[PATCHED.index("C") :])
FROM_D = tuple(PATCHED[PATCHED.index("D") :])


def eras(of: Sequence[str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("era", of)


def in_mode(mode: str, prompts: list[list[int]] | None = None) -> dict[str, object]:
    return {"do": "forward", "mode": mode, "prompts": PROMPT if prompts is None else prompts}


def speculative(era: str) -> list[str]:
    return [*SPECULATIVE_FROM_C, *(["DRAFT_EXTEND_V2"] if era == "F" else [])]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("others")


@pytest.fixture(scope="module")
def outcomes(scratch: Path) -> dict[str, Outcome]:
    return run_jobs({name: job for era in PATCHED for name, job in _jobs(era, scratch)}, scratch / "results")


def _jobs(era: str, scratch: Path) -> Iterator[tuple[str, Job]]:
    plain = lay_out_sglang(era, scratch / "plain" / era)
    patched = patched_sglang(era, scratch / "patched" / era)
    for name, (plan, rollout) in _plans(era).items():
        yield f"{era}: {name}: unpatched", Job(plain, plan)
        yield f"{era}: {name}: on", Job(patched, plan, dumping(dump_of(scratch, era, name), rollout))


def _plans(era: str) -> dict[str, tuple[Plan, dict[str, object]]]:
    everything: dict[str, object] = {"modes": ["all"]}
    graphs = {"disable_cuda_graph": False}
    plans: dict[str, tuple[Plan, dict[str, object]]] = {
        "graphs": (Plan([GENERATE], graphs), everything),
        "graphs, decode": (Plan([{**GENERATE, "new_tokens": 13}], graphs), {"modes": ["decode"]}),
        "two runners": (Plan([GENERATE, {**GENERATE, "worker": 1}, GENERATE], workers=({}, {})), everything),
    }
    if era != "A":
        idle = in_mode("IDLE", [])
        plans["idle"] = Plan([idle, GENERATE, idle, GENERATE]), {"min_tokens": 1}
        plans["idle, all"] = Plan([idle, GENERATE, idle]), everything
        plans["mixed"] = Plan([in_mode("MIXED")]), {}
    if era in FROM_C:
        steps = Plan([*(in_mode(mode) for mode in speculative(era)), GENERATE])
        plans["speculative"] = steps, {"min_tokens": 1}
        plans["speculative, decode"] = steps, {"modes": ["decode"]}
        plans["speculative, all"] = steps, everything
        plans["draft"] = Plan(DRAFTED, workers=TARGET_AND_DRAFT), everything
        plans["draft too"] = Plan(DRAFTED, workers=TARGET_AND_DRAFT), {"modes": ["all"], "draft": True}
    if era in FROM_D:
        plans["prefill server"] = Plan([in_mode("EXTEND")] * 2, {"disaggregation_mode": "prefill"}), BOTH_ROLES
        plans["decode server"] = Plan([DECODE_STEP] * 3, {"disaggregation_mode": "decode"}), BOTH_ROLES
        plans["decode server, default"] = Plan([DECODE_STEP], {"disaggregation_mode": "decode"}), {}
    if era == "F":
        plans["sliced"] = Plan([in_mode("SPLIT_PREFILL")]), {}
        plans["diffusion"] = Plan([in_mode("DLLM_EXTEND")]), {}
        plans["rank fault"] = Plan([{"do": "rank_fault", "prompts": PROMPT}]), {}
    return plans


def dump_of(scratch: Path, era: str, name: str) -> Path:
    # A prefill and a decode server of one job have one config, and so one dump path.
    shared = name if not name.endswith(" server") else "disaggregated"
    return scratch / "dumps" / era / shared.replace(", ", "_").replace(" ", "_")


@eras(PATCHED)
def test_the_same_bits_are_computed_as_unpatched(outcomes: dict[str, Outcome], era: str) -> None:
    for name in _plans(era):
        on, unpatched = (outcomes[f"{era}: {name}: {mode}"].served for mode in ("on", "unpatched"))
        assert on.numbers() == unpatched.numbers(), name
        assert on.hooks == 0


@eras(PATCHED[1:])
def test_an_idle_forward_is_no_forward(outcomes: dict[str, Outcome], scratch: Path, era: str) -> None:
    """It is no step either: a data-parallel rank that idles counts the same forwards as one that does not."""
    assert modes_in(dump_of(scratch, era, "idle")) == [(0, "EXTEND", 4), (1, "EXTEND", 4)]
    assert modes_in(dump_of(scratch, era, "idle, all")) == [(0, "EXTEND", 4), (1, "DECODE", 1)]
    _, second = forwards_in(dump_of(scratch, era, "idle"))
    assert second.meta["skipped"] == {"idle": 2, "decode": 1}


@eras(PATCHED[1:])
def test_a_mixed_batch_counts_as_extend(outcomes: dict[str, Outcome], scratch: Path, era: str) -> None:
    assert modes_in(dump_of(scratch, era, "mixed")) == [(0, "MIXED", 4)]


@eras(FROM_C)
def test_speculative_forwards_count_neither_as_extend_nor_as_decode(
    outcomes: dict[str, Outcome], scratch: Path, era: str
) -> None:
    assert modes_in(dump_of(scratch, era, "speculative")) == [(0, "EXTEND", 4)]
    assert modes_in(dump_of(scratch, era, "speculative, decode")) == [(0, "DECODE", 1)]
    ran = [*speculative(era), "EXTEND"]
    expected = [*((step, mode, 4) for step, mode in enumerate(ran)), (len(ran), "DECODE", 1)]
    assert modes_in(dump_of(scratch, era, "speculative, all")) == expected


@eras(FROM_C)
def test_a_draft_model_is_dumped_only_when_asked_and_apart(
    outcomes: dict[str, Outcome], scratch: Path, era: str
) -> None:
    target = [(0, "EXTEND", 4), (1, "DECODE", 1)]
    assert [path.name for path in dump_of(scratch, era, "draft").glob("[!.]*")] == ["rollout"]
    assert modes_in(dump_of(scratch, era, "draft")) == target
    both = dump_of(scratch, era, "draft too")
    assert sorted(path.name for path in both.glob("[!.]*")) == ["rollout", "rollout_draft"]
    assert modes_in(both) == modes_in(both, "rollout_draft") == target
    assert [dump.meta["engine"]["is_draft"] for dump in forwards_in(both, "rollout_draft")] == [True, True]


@eras(FROM_D)
def test_prefill_and_decode_servers_share_one_config_and_dump_apart(
    outcomes: dict[str, Outcome], scratch: Path, era: str
) -> None:
    dump_path = dump_of(scratch, era, "prefill server")
    assert sorted(path.name for path in dump_path.glob("[!.]*")) == ["rollout_decode", "rollout_prefill"]
    assert modes_in(dump_path, "rollout_prefill") == [(0, "EXTEND", 4)]
    assert modes_in(dump_path, "rollout_decode") == [(0, "DECODE", 2), (1, "DECODE", 2)]
    roles = [next(forwards_in(dump_path, f"rollout_{role}")).meta["engine"]["role"] for role in ("prefill", "decode")]
    assert roles == ["prefill", "decode"]


@eras(FROM_D)
def test_a_decode_server_has_something_to_dump_without_being_asked(
    outcomes: dict[str, Outcome], scratch: Path, era: str
) -> None:
    assert modes_in(dump_of(scratch, era, "decode server, default"), "rollout_decode") == [(0, "DECODE", 2)]


@eras(PATCHED)
def test_a_graph_replay_is_named_where_its_numbers_should_be(
    outcomes: dict[str, Outcome], scratch: Path, era: str
) -> None:
    outcome = outcomes[f"{era}: graphs: on"]
    assert outcome.served.replays == (1,)
    prefill, decode = forwards_in(dump_of(scratch, era, "graphs"))
    assert (len(prefill.data), prefill.meta["problems"]) == (34, [])
    assert decode.data == {}
    (problem,) = decode.meta["problems"]
    assert "graph" in problem["message"] and "launch-args" in problem["message"]
    assert outcome.warned("graph", "launch-args")


@eras(PATCHED)
def test_replays_are_said_once_and_not_for_every_step(outcomes: dict[str, Outcome], era: str) -> None:
    said = outcomes[f"{era}: graphs, decode: on"].said
    assert len([sentence for sentence in said if "no module's forward ran" in sentence]) == 1


@eras(PATCHED)
def test_a_second_runner_in_the_process_has_its_own_rank_and_steps(
    outcomes: dict[str, Outcome], scratch: Path, era: str
) -> None:
    dump_path = dump_of(scratch, era, "two runners")
    first, second = ([dump.meta for dump in forwards_in(dump_path, rank=rank)] for rank in (0, 1))
    assert [(meta["step"], meta["forward"]["mode"]) for meta in first] == [
        (0, "EXTEND"),
        (1, "DECODE"),
        (2, "EXTEND"),
        (3, "DECODE"),
    ]
    assert [(meta["step"], meta["forward"]["mode"]) for meta in second] == [(0, "EXTEND"), (1, "DECODE")]
    assert {meta["rank"] for meta in first} == {0} and {meta["rank"] for meta in second} == {1}
    assert [meta["problems"] for meta in [*first, *second]] == [[]] * 6


def test_a_sliced_prefill_is_a_step_per_slice(outcomes: dict[str, Outcome], scratch: Path) -> None:
    dumps = list(forwards_in(dump_of(scratch, "F", "sliced")))
    assert [dump.meta["forward"]["mode"] for dump in dumps] == ["SPLIT_PREFILL"] * 3
    layers = [{entry.split(".")[3] for entry in dump.data if ".layers." in entry} for dump in dumps]
    assert layers == [{"0"}, {"1"}, {"2"}]


def test_a_diffusion_step_counts_as_extend(outcomes: dict[str, Outcome], scratch: Path) -> None:
    assert modes_in(dump_of(scratch, "F", "diffusion")) == [(0, "DLLM_EXTEND", 4)]


def test_a_forward_computed_twice_after_a_rank_fault_is_one_step_with_two_calls(
    outcomes: dict[str, Outcome], scratch: Path
) -> None:
    (dump,) = forwards_in(dump_of(scratch, "F", "rank fault"))
    calls = [entry.rpartition(".")[2] for entry in dump.data]
    assert (calls.count("0"), calls.count("1")) == (34, 34)
