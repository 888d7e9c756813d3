"""A real ModelRunner of SGLang: unpatched, and with probe-patch off and on; every release that CI runs."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.real_sglang.against_measured import assert_agrees
from tests.real_sglang.report import CONFIGS, PROMPTS, Checkpoints, Generated
from tests.real_sglang.setups import Driven, Setup, drive, probe_patch
from tests.runtime.dumps import DumpOnDisk, read_dump

SETUPS = (Setup("0.5.9", "patch"), Setup("0.5.10.post1", "patch"), Setup("0.5.12.post1", "plugin"))
FILES = {"dump.json", "stack.json", "construct.json", "meta.json"}
TOKENS = [token for prompt in PROMPTS for token in prompt]
LENGTHS = [len(prompt) for prompt in PROMPTS]
POSITIONS = [position for length in LENGTHS for position in range(length)]


@dataclass(frozen=True)
class Runs:
    """The same work in three processes."""

    setup: Setup
    untouched: Driven
    off: Driven
    on: Driven
    checkpoints: Checkpoints


@pytest.fixture(scope="module", params=SETUPS, ids=str)
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, checkpoints: Checkpoints) -> Runs:
    setup: Setup = request.param
    folder = tmp_path_factory.mktemp(setup.version)
    tree = setup.lay_out(folder)
    # Our package is installed beside every release: the plugin is shut out by name for the run that has no part of us.
    untouched = ("default", "measured", "reloaded", "two_runners"), {"SGLANG_PLUGINS": "none"}
    before = drive(tree, folder / "untouched", checkpoints, *untouched)
    if setup.through == "patch":
        probe_patch("apply", tree)
    off = drive(tree, folder / "off", checkpoints, ("default",), {"DUMP_ON": "0"})
    on = drive(tree, folder / "on", checkpoints, tuple(CONFIGS), {"DUMP_ON": "1"})
    return Runs(setup, before, off, on, checkpoints)


def steps(dump: Path) -> list[str]:
    """Where there are dumps, as ``rollout/step0/rank0``."""
    return sorted(str(path.parent.relative_to(dump)) for path in dump.glob("*/*/*/dump.json"))


def read(dump: Path, step: int = 0, rank: int = 0) -> DumpOnDisk:
    return read_dump(dump / "rollout" / f"step{step}" / f"rank{rank}")


def only(driven: Driven, scenario: str) -> Generated:
    (generated,) = driven.report.outcomes[scenario].generated
    return generated


def output(generated: Generated) -> tuple[Any, Any]:
    return generated.tokens, generated.logits


def test_no_token_and_no_logit_differs_by_a_bit(runs: Runs) -> None:
    expected = output(only(runs.untouched, "default"))
    assert len(set(expected[1])) == len(expected[1]) == 4, "the forwards are told apart by their logits"
    for driven in (runs.off, runs.on):
        assert output(only(driven, "default")) == expected
    for scenario in ("measured", "decode", "all", "capped", "functions"):
        assert output(only(runs.on, scenario)) == expected


def test_off_there_is_nothing_of_it(runs: Runs) -> None:
    reports = [driven.report for driven in (runs.untouched, runs.off, runs.on)]
    assert [report.wrapped for report in reports] == [False, False, True]
    assert [report.runtime_loaded for report in reports] == [False, False, True]
    assert not runs.off.dump("default").exists()
    assert "probe-patch" not in runs.off.log.replace(str(runs.off.folder), "")


def test_by_default_the_first_extend_is_recorded(runs: Runs) -> None:
    dump = runs.on.dump("default")
    assert steps(dump) == ["rollout/step0/rank0"]
    assert {path.name for path in (dump / "rollout/step0/rank0").iterdir()} == FILES | {"inputs.pt"}


@pytest.mark.parametrize("scenario", ["default", "measured"])
def test_every_module_is_there_with_its_numbers(runs: Runs, scenario: str) -> None:
    """Also where hooks of somebody else's are on the same model."""
    assert_agrees(read(runs.on.dump(scenario)), only(runs.untouched, "measured").measured[0])


def test_meta_says_which_forward_of_which_engine_it_is(runs: Runs) -> None:
    meta = read(runs.on.dump("default")).meta
    forward = meta["forward"]
    assert (forward["mode"], forward["tokens"], forward["forward_pass_id"]) == ("EXTEND", sum(LENGTHS), 1)
    assert (forward["seq_lens"], forward["extend_prefix_lens"]) == (LENGTHS, [0, 0])
    names_requests = runs.setup.version != "0.5.9"
    assert forward["request_ids"] == (["request-0", "request-1"] if names_requests else None)
    assert forward["model_path"] == str(runs.checkpoints.first)
    assert (meta["engine"]["gpu_id"], meta["engine"]["node_rank"], meta["engine"]["is_draft"]) == (0, 0, False)
    assert meta["parallel"] == {name: {"rank": 0, "size": 1} for name in ("tp", "pp", "dp", "ep")}
    assert (meta["phase"], meta["rank"], meta["skipped"], meta["problems"]) == ("rollout", 0, {}, [])
    assert meta["target_versions"] == {"sglang": runs.setup.version}


def test_inputs_are_kept_as_tensors(runs: Runs) -> None:
    inputs = torch.load(runs.on.dump("default") / "rollout/step0/rank0/inputs.pt", weights_only=True)
    assert inputs["input_ids"].tolist() == TOKENS
    assert inputs["positions"].tolist() == POSITIONS
    assert inputs["seq_lens"].tolist() == LENGTHS


def test_or_as_hashes(runs: Runs) -> None:
    folder = runs.on.dump("all") / "rollout/step0/rank0"
    assert {path.name for path in folder.iterdir()} == FILES
    little_endian = b"".join(token.to_bytes(8, "little") for token in TOKENS)
    expected = {"shape": [len(TOKENS)], "sha256": hashlib.sha256(little_endian).hexdigest()}
    assert read_dump(folder).meta["forward"]["input_ids"] == expected


@pytest.mark.parametrize(
    ("scenario", "modes"),
    [
        ("decode", ["DECODE"] * 3),
        ("all", ["EXTEND"] + ["DECODE"] * 3),
        ("capped", ["EXTEND", "DECODE"]),
    ],
)
def test_the_forwards_asked_for_are_the_steps(runs: Runs, scenario: str, modes: list[str]) -> None:
    dump = runs.on.dump(scenario)
    assert steps(dump) == [f"rollout/step{step}/rank0" for step in range(len(modes))]
    assert [read(dump, step).meta["forward"]["mode"] for step in range(len(modes))] == modes
    forwards = only(runs.untouched, "measured").measured
    for step, measured in enumerate(forwards[4 - len(modes) :] if scenario == "decode" else forwards[: len(modes)]):
        assert_agrees(read(dump, step), measured)


def test_at_level_mix_functions_are_recorded_inside_the_modules_that_call_them(runs: Runs) -> None:
    dump = runs.on.dump("functions")
    assert len(steps(dump)) == 4
    forwards = only(runs.untouched, "measured").measured
    for step, measured in enumerate(forwards):
        recorded = read(dump, step)
        assert recorded.meta["problems"] == []
        assert {call.name for call in measured} <= recorded.data.keys()
        linear = [entry for entry in recorded.data if entry.startswith("Functional.linear.")]
        inside = [recorded.construct[entry] for entry in linear]
        assert "Module.model.layers.0.self_attn.qkv_proj.QKVParallelLinear.forward.0" in inside


def test_the_last_of_max_forwards_says_so(runs: Runs) -> None:
    dump = runs.on.dump("capped")
    assert [read(dump, step).meta["forward"]["max_forwards_reached"] for step in (0, 1)] == [False, True]
    assert not list(dump.rglob("inputs.pt"))


def test_an_extend_of_one_token_is_skipped_and_counted(runs: Runs) -> None:
    dump = runs.on.dump("few_tokens")
    assert steps(dump) == ["rollout/step0/rank0"]
    meta = read(dump).meta
    assert (meta["forward"]["tokens"], meta["forward"]["forward_pass_id"]) == (sum(LENGTHS), 2)
    assert meta["skipped"] == {"few_tokens": 1}


def test_an_exception_passes_and_leaves_what_came_before_it(runs: Runs) -> None:
    outcome = runs.on.report.outcomes["raising"]
    assert outcome.error == "planned by the test"
    assert output(outcome.generated[0]) == output(only(runs.untouched, "default"))
    measured = only(runs.untouched, "measured").measured[0]
    dump = runs.on.dump("raising")
    assert steps(dump) == ["rollout/step0/rank0", "rollout/step1/rank0"]
    broken, whole = read(dump, 0), read(dump, 1)
    assert_agrees(whole, measured)
    ended = {call.name for call in measured if "output" in broken.data.get(call.name, {})}
    names = [call.name for call in measured]
    raised = names.index("Module.model.layers.1.mlp.act_fn.SiluAndMul.forward.0")
    assert ended == set(names[:raised])
    assert "ArithmeticError" in broken.meta["ended_by_exception"]
    assert whole.meta["ended_by_exception"] is None


def test_new_weights_and_a_new_model_are_recorded_as_they_are(runs: Runs) -> None:
    dump = runs.on.dump("reloaded")
    generated = runs.untouched.report.outcomes["reloaded"].generated
    assert [output(batch) for batch in runs.on.report.outcomes["reloaded"].generated] == list(map(output, generated))
    assert steps(dump) == [f"rollout/step{step}/rank0" for step in range(3)]
    for step, batch in enumerate(generated):
        assert_agrees(read(dump, step), batch.measured[0])
    assert generated[0].logits == generated[2].logits != generated[1].logits
    first, second = str(runs.checkpoints.first), str(runs.checkpoints.second)
    assert [read(dump, step).meta["forward"]["model_path"] for step in range(3)] == [first, second, first]


def test_two_runners_in_one_process_have_a_rank_each(runs: Runs) -> None:
    dump = runs.on.dump("two_runners")
    assert steps(dump) == ["rollout/step0/rank0", "rollout/step0/rank1", "rollout/step1/rank0"]
    generated = runs.untouched.report.outcomes["two_runners"].generated
    for (step, rank), batch in zip(((0, 0), (0, 1), (1, 0)), generated, strict=True):
        assert_agrees(read(dump, step, rank), batch.measured[0])
    paths = [read(dump, 0, rank).meta["forward"]["model_path"] for rank in (0, 1)]
    assert paths == [str(runs.checkpoints.first), str(runs.checkpoints.second)]


def test_generators_that_take_turns_do_not_mix(runs: Runs) -> None:
    dump = runs.on.dump("generators")
    assert steps(dump) == ["rollout/step0/rank0", "rollout/step0/rank1", "rollout/step1/rank0"]
    batches = runs.untouched.report.outcomes["two_runners"].generated
    one, other, dropped = runs.on.report.outcomes["generators"].generated
    assert [output(one), output(other)] == [output(batches[0]), output(batches[1])]
    assert dropped.logits == one.logits[:1]
    for (step, rank), batch in zip(((0, 0), (0, 1), (1, 0)), batches, strict=True):
        assert_agrees(read(dump, step, rank), batch.measured[0])


def test_a_draft_is_left_out_unless_asked_for(runs: Runs) -> None:
    assert steps(runs.on.dump("draft")) == ["rollout/step0/rank0"]
    assert read(runs.on.dump("draft")).meta["engine"]["is_draft"] is False
    dump = runs.on.dump("draft_asked")
    assert steps(dump) == ["rollout/step0/rank0", "rollout_draft/step0/rank0"]
    assert read_dump(dump / "rollout_draft/step0/rank0").meta["engine"]["is_draft"] is True


def test_nothing_went_wrong_on_the_side(runs: Runs) -> None:
    metas = [read_dump(path.parent).meta for path in runs.on.folder.rglob("meta.json")]
    assert len(metas) == 30
    assert {tuple(meta["problems"]) for meta in metas} == {()}
    assert "/probe_patch/" not in runs.on.log, "no frame of ours is in a traceback"
