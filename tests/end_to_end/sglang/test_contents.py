"""What a dump holds, in every era: values as they were before they were overwritten, and what makes it comparable."""

import hashlib
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.end_to_end.sglang.jobs import Job, Outcome, dumping, forwards_in, patched_sglang, run_jobs
from tests.fixtures.sglang.runs import Plan
from tests.fixtures.sglang.trees import PATCHED
from tests.runtime.dumps import DumpOnDisk

PROMPTS = [[1, 2, 3, 4], [5, 6]]
PLAN = Plan([{"do": "generate", "prompts": PROMPTS, "new_tokens": 2}], {"model_path": "mine", "port": 30123})
INPUTS = ("tensor", "hash", "none")

each_era = pytest.mark.parametrize("era", PATCHED)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("contents")


@pytest.fixture(scope="module")
def outcomes(scratch: Path) -> dict[str, Outcome]:
    return run_jobs({name: job for era in PATCHED for name, job in _jobs(era, scratch)}, scratch / "results")


def _jobs(era: str, scratch: Path) -> Iterator[tuple[str, Job]]:
    tree = patched_sglang(era, scratch / "trees" / era)
    for inputs in INPUTS:
        config = {"modes": ["all"], "inputs": inputs}
        yield f"{era}: {inputs}", Job(tree, PLAN, dumping(scratch / era / inputs, config))


@pytest.fixture
def dumps(outcomes: dict[str, Outcome], scratch: Path, era: str) -> list[DumpOnDisk]:
    """Of the prefill and of the decode step."""
    return list(forwards_in(scratch / era / "tensor"))


def statistics(dump: DumpOnDisk, module: str, side: str, index: int) -> dict[str, Any]:
    record = dump.data[f"Module.{module}.forward.0"]
    found: dict[str, Any] = record[side][index]
    return {name: found[name] for name in ("shape", "Max", "Min", "Mean", "Norm")}


def tokens_seen(folder: Path) -> dict[str, list[int]]:
    return {name: tensor.tolist() for name, tensor in torch.load(folder / "inputs.pt", weights_only=True).items()}


def sha256(numbers: list[int]) -> str:
    return hashlib.sha256(struct.pack(f"<{len(numbers)}q", *numbers)).hexdigest()


@each_era
@pytest.mark.parametrize("step", [0, 1])
def test_a_fused_norm_is_recorded_as_it_was_called_and_as_it_left(dumps: list[DumpOnDisk], step: int) -> None:
    """It overwrites both of its inputs, which are the outputs of what ran before it, and the layer's inputs."""
    dump = dumps[step]
    for layer in (1, 2):
        before, norm = f"model.layers.{layer - 1}.", f"model.layers.{layer}.input_layernorm.RMSNorm"
        hidden = statistics(dump, f"{before}mlp.TinyMLP", "output", 0)
        residual = statistics(dump, f"{before}post_attention_layernorm.RMSNorm", "output", 1)
        entered = [statistics(dump, norm, "input_args", index) for index in (0, 1)]
        left = [statistics(dump, norm, "output", index) for index in (0, 1)]
        assert entered == [hidden, residual]
        assert left[0] != entered[0] and left[1] != entered[1]
        layers = [f"model.layers.{number}.TinyDecoderLayer" for number in (layer - 1, layer)]
        assert statistics(dump, layers[0], "output", 0) == statistics(dump, layers[1], "input_args", 1) == hidden
        assert statistics(dump, layers[0], "output", 1) == residual


@each_era
def test_the_embedding_is_recorded_before_it_becomes_the_residual(dumps: list[DumpOnDisk]) -> None:
    embedded = statistics(dumps[0], "model.embed_tokens.Embedding", "output", 0)
    assert statistics(dumps[0], "model.layers.0.input_layernorm.RMSNorm", "input_args", 0) == embedded
    assert statistics(dumps[0], "model.layers.0.post_attention_layernorm.RMSNorm", "input_args", 1) == embedded
    assert statistics(dumps[0], "model.layers.0.post_attention_layernorm.RMSNorm", "output", 1) != embedded


@each_era
def test_the_tokens_that_went_in_are_beside_the_statistics(
    outcomes: dict[str, Outcome], scratch: Path, era: str
) -> None:
    ((first, second),) = outcomes[f"{era}: tensor"].served.answers
    prefill, decode = (tokens_seen(scratch / era / "tensor" / "rollout" / f"step{n}" / "rank0") for n in (0, 1))
    assert prefill["input_ids"] == [1, 2, 3, 4, 5, 6]
    assert prefill["positions"] == [0, 1, 2, 3, 0, 1]
    assert prefill["seq_lens"] == [4, 2]
    assert decode["input_ids"] == [first[0], second[0]]
    assert decode["positions"] == [4, 2]
    assert decode["seq_lens"] == [5, 3]


@each_era
@pytest.mark.parametrize("inputs", INPUTS)
def test_token_ids_are_a_file_or_a_hash_or_nothing(
    outcomes: dict[str, Outcome], scratch: Path, era: str, inputs: str
) -> None:
    (folder,) = (scratch / era / inputs / "rollout" / "step0").iterdir()
    assert (folder / "inputs.pt").exists() == (inputs == "tensor")
    told = next(forwards_in(scratch / era / inputs)).meta["forward"]
    if inputs == "none":
        assert "input_ids" not in told
    else:
        assert told["input_ids"] == {"shape": [6], "sha256": sha256([1, 2, 3, 4, 5, 6])}
        assert told["positions"] == {"shape": [6], "sha256": sha256([0, 1, 2, 3, 0, 1])}


@each_era
def test_a_dump_says_which_forward_it_is(dumps: list[DumpOnDisk], era: str) -> None:
    prefill, decode = (dump.meta["forward"] for dump in dumps)
    assert [prefill["seq_lens"], decode["seq_lens"]] == [[4, 2], [5, 3]]
    assert [prefill["mode"], decode["mode"]] == ["EXTEND", "DECODE"]
    numbered, named = era in ("E", "F"), era in ("A", "F")
    assert [prefill["forward_pass_id"], decode["forward_pass_id"]] == ([1, 2] if numbered else [None, None])
    assert prefill["request_ids"] == decode["request_ids"] == (["r0", "r1"] if named else None)


@each_era
def test_a_dump_says_whose_it_is(dumps: list[DumpOnDisk], era: str) -> None:
    for dump in dumps:
        engine = dump.meta["engine"]
        assert dump.meta["forward"]["model_path"] == "mine"
        assert (engine["host"], engine["port"]) == ("127.0.0.1", 30123)
        assert (engine["gpu_id"], engine["dist_port"], engine["is_draft"]) == (0, 28000, False)
        assert engine["node_rank"] == (None if era == "A" else 0)
        assert set(dump.meta["parallel"]) == {"tp", "pp", "dp", "ep"}
        assert (dump.meta["phase"], dump.meta["rank"]) == ("rollout", 0)
