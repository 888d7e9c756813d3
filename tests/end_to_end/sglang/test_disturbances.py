"""Exceptions, generators, threads and new weights in every era: the right dumps, and the same bits as unpatched."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.sglang.jobs import Job, Outcome, dumping, forwards_in, modes_in, patched_sglang, run_jobs
from tests.fixtures.sglang.runs import Plan
from tests.fixtures.sglang.trees import PATCHED, lay_out_sglang
from tests.runtime.dumps import DumpOnDisk

PROMPT = [[1, 2, 3, 4]]
GENERATE = {"do": "generate", "prompts": PROMPT, "new_tokens": 2}
PLANS = {
    "failure": Plan([{"do": "fail", "prompts": PROMPT, "layer": 1}, GENERATE]),
    "failures only": Plan([{"do": "fail", "prompts": PROMPT, "layer": 0}] * 2),
    "generators": Plan([{"do": "interleave", "prompts": [[1, 2, 3, 4], [5, 6]], "new_tokens": 2}]),
    "abandoned": Plan([{"do": "abandon", "prompts": PROMPT}, GENERATE]),
    "thread": Plan([{"do": "generate_in_a_thread", "prompts": PROMPT, "new_tokens": 2}, GENERATE]),
    "reload": Plan([GENERATE, {"do": "reload", "model_path": "other"}, GENERATE]),
    "the other model": Plan([GENERATE], {"model_path": "other"}),
}
EXTEND, DECODE = ("EXTEND", 4), ("DECODE", 1)
DUMPED = {
    "failure": [EXTEND, EXTEND, DECODE],
    "failures only": [EXTEND, EXTEND],
    "generators": [EXTEND, ("EXTEND", 2), DECODE, DECODE],
    "abandoned": [EXTEND, EXTEND, DECODE],
    "thread": [EXTEND, DECODE, EXTEND, DECODE],
    "reload": [EXTEND, DECODE, EXTEND, DECODE],
    "the other model": [EXTEND, DECODE],
}

each_era = pytest.mark.parametrize("era", PATCHED)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("disturbed")


@pytest.fixture(scope="module")
def outcomes(scratch: Path) -> dict[str, Outcome]:
    return run_jobs({name: job for era in PATCHED for name, job in _jobs(era, scratch)}, scratch / "results")


def _jobs(era: str, scratch: Path) -> Iterator[tuple[str, Job]]:
    plain = lay_out_sglang(era, scratch / "plain" / era)
    patched = patched_sglang(era, scratch / "patched" / era)
    for name, plan in PLANS.items():
        yield f"{era}: {name}: unpatched", Job(plain, plan)
        yield f"{era}: {name}: on", Job(patched, plan, dumping(_dump(scratch, era, name), {"modes": ["all"]}))


def _dump(scratch: Path, era: str, name: str) -> Path:
    return scratch / "dumps" / era / name.replace(" ", "_")


def outputs(dump: DumpOnDisk) -> dict[str, Any]:
    """Of the modules that returned; inputs name the slots of the KV cache, which differ between requests."""
    return {name: record["output"] for name, record in dump.data.items() if record.get("output") is not None}


@each_era
@pytest.mark.parametrize("name", PLANS)
def test_each_forward_is_one_dump_and_the_same_bits_are_computed(
    outcomes: dict[str, Outcome], scratch: Path, era: str, name: str
) -> None:
    on, unpatched = (outcomes[f"{era}: {name}: {mode}"].served for mode in ("on", "unpatched"))
    assert on.numbers() == unpatched.numbers()
    assert on.hooks == 0
    assert modes_in(_dump(scratch, era, name)) == [(step, *kind) for step, kind in enumerate(DUMPED[name])]


@each_era
def test_what_came_before_an_exception_is_on_disk_and_the_next_forward_is_whole(
    outcomes: dict[str, Outcome], scratch: Path, era: str
) -> None:
    failed, whole, _ = forwards_in(_dump(scratch, era, "failure"))
    assert outcomes[f"{era}: failure: on"].served.answers[0] == "PlantedFailure: planted in layer 1"
    assert failed.meta["ended_by_exception"] == "PlantedFailure"
    assert set(failed.data) < set(whole.data)
    # The first layer whole, and of the second what came before its MLP.
    assert [name for name in failed.data if ".layers.0." in name] == [n for n in whole.data if ".layers.0." in n]
    assert "Module.model.layers.1.post_attention_layernorm.RMSNorm.forward.0" in failed.data
    assert not [name for name in failed.data if ".layers.1.mlp" in name or ".layers.2." in name]
    assert (len(whole.data), whole.meta["ended_by_exception"], whole.meta["problems"]) == (34, None, [])
    assert outputs(failed).items() < outputs(whole).items()


@each_era
def test_new_weights_are_dumped_from_the_new_model(outcomes: dict[str, Outcome], scratch: Path, era: str) -> None:
    before, _, after, _ = forwards_in(_dump(scratch, era, "reload"))
    other, _ = forwards_in(_dump(scratch, era, "the other model"))
    assert outputs(after) == outputs(other)
    assert outputs(after).keys() == outputs(before).keys()
    assert outputs(after) != outputs(before)


@each_era
def test_a_dump_names_the_model_it_ran_with(outcomes: dict[str, Outcome], scratch: Path, era: str) -> None:
    paths = [dump.meta["forward"]["model_path"] for dump in forwards_in(_dump(scratch, era, "reload"))]
    assert paths == ["tiny", "tiny", "other", "other"]
