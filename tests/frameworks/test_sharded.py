"""Models that torch spreads over two ranks: the same bits, as many collectives, and the numbers of each rank's part."""

import math
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
@pytest.mark.parametrize("layout", [*FULLY_SHARDED, "DistributedDataParallel"])
def test_before_a_reduction_each_rank_has_its_own_gradients(
    results: list[Result], scratch: Path, layout: str, level: str
) -> None:
    """Their mean over the ranks is what training is left with, whole or in parts."""
    means = []
    for rank in RANKS:
        found = entries(read(scratch, layout, level, rank), "parameters_grad")
        means.append(
            {f"{entry}.{name}": one["Mean"] for entry, record in found.items() for name, (one,) in record.items()}
        )
    assert means[0] != means[1]
    left = [_totals(result[layout]["gradients"]) for result in results]
    assert set(means[0]) == set(means[1]) == set(left[0]) | set(left[1])
    for name in means[0]:
        parts = [totals[name] for totals in left if name in totals]
        sizes = [math.prod(part["shape"]) for part in parts]
        mean = sum(size * part["Mean"] for size, part in zip(sizes, parts, strict=True)) / sum(sizes)
        scale = max(part["scale"] for part in parts)
        assert (means[0][name] + means[1][name]) / 2 == pytest.approx(mean, rel=1e-5, abs=1e-5 * scale)


def _totals(gradients: dict[str, Any]) -> dict[str, Any]:
    return {
        f"{label}.parameters_grad.0.{name}": total
        for label, totals in gradients.items()
        for name, total in totals.items()
        if total["shape"] != [0]
    }


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
