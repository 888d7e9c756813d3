"""Models that torch spreads over two ranks: the same bits, as many collectives, and the numbers of each rank's part."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.frameworks.agreement import (
    assert_calls_agree,
    assert_gradients_of_outputs_agree,
    assert_parameter_gradients_agree,
    assert_values_agree,
    entries,
)
from tests.frameworks.ranks import Result, launch
from tests.frameworks.recording import LEVELS, OBSERVED_STEP, STEPS, dump_path_of
from tests.frameworks.sharded.layouts import FULLY_SHARDED, LAYOUTS
from tests.runtime.dumps import DumpOnDisk, read_dump

RANKS = (0, 1)
WRAPPED = re.compile(r"_fsdp_wrapped_module\.|Module\.(module\.)?|FSDP(?=Linear)")
"""What a wrapper adds to names."""

each_layout = pytest.mark.parametrize("layout", LAYOUTS)
each_level = pytest.mark.parametrize("level", LEVELS)
at_each_level_with_modules = pytest.mark.parametrize("level", ["L0", "mix"])


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sharded")


@pytest.fixture(scope="module")
def results(scratch: Path) -> list[Result]:
    return launch("tests.frameworks.sharded.program", len(RANKS), scratch)


def read(scratch: Path, layout: str, level: str, rank: int) -> DumpOnDisk:
    return read_dump(dump_path_of(scratch, layout, level) / f"step{OBSERVED_STEP}" / f"rank{rank}")


@each_level
@each_layout
def test_five_steps_compute_the_same_bits_with_as_many_collectives(
    results: list[Result], layout: str, level: str
) -> None:
    for result in results:
        runs = result[layout]["runs"]
        assert runs[level] == runs["plain"] == runs["observed"]
        assert len(set(runs["plain"]["weights"])) == STEPS
        assert result["a barrier"] == 1
        assert all(runs["plain"]["collectives"])
        assert result[layout]["left"][level] == [[]] * STEPS


@at_each_level_with_modules
@each_layout
def test_entries_are_what_plain_hooks_see(results: list[Result], scratch: Path, layout: str, level: str) -> None:
    for rank in RANKS:
        dump, seen = read(scratch, layout, level, rank), results[rank][layout]["calls"]
        assert_calls_agree(dump, seen)
        assert_values_agree(dump, seen)
        assert_gradients_of_outputs_agree(dump, seen)


@at_each_level_with_modules
@pytest.mark.parametrize("layout", ["tensor parallel"])
def test_gradients_of_parameters_are_of_this_ranks_part(
    results: list[Result], scratch: Path, layout: str, level: str
) -> None:
    for rank in RANKS:
        dump = read(scratch, layout, level, rank)
        assert_parameter_gradients_agree(dump, results[rank][layout]["gradients"], 1)


@at_each_level_with_modules
def test_what_is_still_being_communicated_has_no_numbers_and_that_is_said(
    results: list[Result], scratch: Path, level: str
) -> None:
    for rank in RANKS:
        dump = read(scratch, "tensor parallel", level, rank)
        for block in (0, 1):
            (output,) = dump.data[f"Module.blocks.{block}.down.Linear.forward.0"]["output"]
            assert (output["shape"], output["Max"], output["Norm"]) == ([2, 4, 8], None, None)
            (around,) = dump.data[f"Module.blocks.{block}.Block.forward.0"]["output"]
            assert around["Norm"] > 0
        (problem,) = dump.meta["problems"]
        assert problem["message"] == "ValueError: its values were still being communicated, so it has no numbers"


@at_each_level_with_modules
def test_of_a_wrapped_model_the_gradients_are_those_before_the_reduction(
    results: list[Result], scratch: Path, level: str
) -> None:
    """The mean over the ranks is what training is left with."""
    means: list[dict[str, float]] = []
    for rank in RANKS:
        found = entries(read(scratch, "DistributedDataParallel", level, rank), "parameters_grad")
        means.append(
            {f"{entry}.{name}": one["Mean"] for entry, record in found.items() for name, (one,) in record.items()}
        )
    assert means[0] != means[1]
    left = results[0]["DistributedDataParallel"]["gradients"]
    reduced = {
        f"{label}.parameters_grad.0.{name}": total for label, totals in left.items() for name, total in totals.items()
    }
    assert set(means[0]) == set(means[1]) == set(reduced)
    for name, total in reduced.items():
        mean = (means[0][name] + means[1][name]) / 2
        assert mean == pytest.approx(total["Mean"], rel=1e-5, abs=1e-5 * total["scale"])


@at_each_level_with_modules
@pytest.mark.parametrize("layout", FULLY_SHARDED)
def test_fully_sharded_parameters_get_the_same_gradients_as_replicated_ones(
    results: list[Result], scratch: Path, layout: str, level: str
) -> None:
    for rank in RANKS:
        sharded, replicated = (
            {
                WRAPPED.sub("", f"{entry}.{name}"): gradient["Norm"]
                for entry, record in entries(read(scratch, kind, level, rank), "parameters_grad").items()
                for name, (gradient,) in record.items()
            }
            for kind in (layout, "DistributedDataParallel")
        )
        assert len(sharded) == len(replicated) > 0
        assert sharded == pytest.approx(replicated, rel=1e-6)
        assert read(scratch, layout, level, rank).meta["problems"] == []


@pytest.mark.parametrize(
    ("layout", "shape", "placements"),
    [
        # Gathered for the pass through the block, and still there when the layer is done.
        ("fully_shard of blocks", [16, 8], None),
        ("fully_shard of layers", [8, 8], [{"Shard": {"dim": 0}}]),
        ("FullyShardedDataParallel", [16, 8], None),
        ("tensor parallel", [8, 8], [{"Shard": {"dim": 0}}]),
    ],
)
def test_a_weight_is_recorded_as_the_rank_holds_it_after_the_call(
    results: list[Result], scratch: Path, layout: str, shape: list[int], placements: Any
) -> None:
    weights = []
    for rank in RANKS:
        data = read(scratch, layout, "L0", rank).data
        (entry,) = [entry for entry in data if re.search(r"blocks\.0\.up\.\w+\.forward\.0", entry)]
        weights.append(data[entry]["parameters"]["weight"])
    assert [(weight["shape"], weight.get("placements")) for weight in weights] == [(shape, placements)] * 2
    assert (weights[0] == weights[1]) == (placements is None)
