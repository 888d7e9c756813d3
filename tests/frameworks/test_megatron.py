"""megatron-core on two ranks, through its own schedules: training computes the same bits, and the entries are right."""

import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.frameworks.agreement import (
    assert_calls_agree,
    assert_gradients_of_outputs_agree,
    assert_parameter_gradients_agree,
    assert_values_agree,
    entries,
    tensors,
)
from tests.frameworks.megatron.shapes import LENGTH, ROWS, SHAPES
from tests.frameworks.ranks import Result, launch
from tests.frameworks.recording import LEVELS, OBSERVED_STEP, STEPS, dump_path_of
from tests.runtime.dumps import DumpOnDisk, read_dump

RANKS = (0, 1)
WITH_MODULES = ("L0", "mix")
RECOMPUTED = [name for name, shape in SHAPES.items() if shape.recompute is not None]

each_model = pytest.mark.parametrize("name", SHAPES)
each_level = pytest.mark.parametrize("level", LEVELS)
at_each_level_with_modules = pytest.mark.parametrize("level", WITH_MODULES)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("megatron")


@pytest.fixture(scope="module")
def results(scratch: Path) -> list[Result]:
    return launch("tests.frameworks.megatron.program", len(RANKS), scratch)


class Recorded:
    """What both ranks recorded of one model at one level, beside what was observed."""

    def __init__(self, results: list[Result], scratch: Path, name: str, level: str) -> None:
        self.results = [result[name] for result in results]
        self._folder = dump_path_of(scratch, name, level)

    def dump(self, rank: int, step: int = OBSERVED_STEP) -> DumpOnDisk:
        return read_dump(self._folder / f"step{step}" / f"rank{rank}")

    def seen(self, rank: int) -> dict[str, Any]:
        calls: dict[str, Any] = self.results[rank]["calls"]
        return calls


@pytest.fixture
def recorded(results: list[Result], scratch: Path, name: str, level: str) -> Recorded:
    return Recorded(results, scratch, name, level)


@each_level
@each_model
def test_five_steps_compute_the_same_bits_recorded_or_not(results: list[Result], name: str, level: str) -> None:
    for result in results:
        runs = result[name]["runs"]
        assert runs[level] == runs["plain"]
        assert len({weights for step in runs["plain"]["weights"] for weights in step}) == STEPS * SHAPES[name].chunks
    assert any(result[name]["runs"]["plain"]["losses"] for result in results)


@each_level
@each_model
def test_after_each_stop_nothing_is_left(results: list[Result], name: str, level: str) -> None:
    for result in results:
        assert result[name]["left"][level] == [[]] * STEPS
        # The same look finds what is there while something is recorded.
        assert all(result[name]["during"][level])


@each_level
@each_model
def test_every_step_is_recorded_without_problems(recorded: Recorded, name: str, level: str) -> None:
    for rank in RANKS:
        for step in range(STEPS):
            meta = recorded.dump(rank, step).meta
            assert (meta["rank"], meta["step"]) == (rank, step)
            assert meta["parallel"]["pp"]["size"] == SHAPES[name].pipeline
            assert meta["parallel"]["tp"]["size"] == SHAPES[name].tensor
            assert meta["parallel"]["ep"]["size"] == SHAPES[name].expert
            if name not in RECOMPUTED:
                assert meta["problems"] == []


@at_each_level_with_modules
@each_model
def test_each_call_of_a_module_has_its_entry_and_its_parent(recorded: Recorded, name: str) -> None:
    for rank in RANKS:
        dump = recorded.dump(rank)
        assert_calls_agree(dump, recorded.seen(rank))
        calls = Counter(entry.rpartition(".forward.")[0] for entry in entries(dump, "forward"))
        assert set(calls.values()) == {SHAPES[name].micro_batches}


@at_each_level_with_modules
@each_model
def test_inputs_outputs_and_parameters_are_what_plain_hooks_see(recorded: Recorded) -> None:
    for rank in RANKS:
        assert_values_agree(recorded.dump(rank), recorded.seen(rank))


@at_each_level_with_modules
@each_model
def test_the_gradients_of_outputs_are_what_plain_hooks_see(recorded: Recorded) -> None:
    for rank in RANKS:
        assert_gradients_of_outputs_agree(recorded.dump(rank), recorded.seen(rank))


@at_each_level_with_modules
@each_model
def test_the_gradients_of_parameters_add_up_to_what_training_is_left_with(recorded: Recorded, name: str) -> None:
    for rank in RANKS:
        gradients = recorded.results[rank]["gradients"]
        assert_parameter_gradients_agree(recorded.dump(rank), gradients, SHAPES[name].micro_batches)


@at_each_level_with_modules
@pytest.mark.parametrize("name", RECOMPUTED)
def test_what_the_backward_pass_computes_again_has_no_second_entry(
    results: list[Result], scratch: Path, name: str, level: str
) -> None:
    once = Recorded(results, scratch, "tensor and sequence parallel", level)
    again = Recorded(results, scratch, name, level)
    for rank in RANKS:
        assert set(entries(again.dump(rank), "forward")) == set(entries(once.dump(rank), "forward"))
        assert again.dump(rank).meta["recomputed"] > 0
        assert once.dump(rank).meta["recomputed"] == 0


@at_each_level_with_modules
@pytest.mark.parametrize(
    ("name", "stages"),
    [
        ("pipeline", [(0, "Module.0"), (1, "Module.0")]),
        ("virtual pipeline", [(0, "Module.0"), (1, "Module.0"), (0, "Module.1"), (1, "Module.1")]),
    ],
)
def test_each_stage_records_its_own_layers_and_hands_on_micro_batch_by_micro_batch(
    recorded: Recorded, name: str, stages: list[tuple[int, str]]
) -> None:
    layers = SHAPES[name].layers // len(stages)
    dumps = [recorded.dump(rank) for rank in RANKS]
    found = [set(entries(dump, "forward")) for dump in dumps]
    for number, (rank, chunk) in enumerate(stages):
        labels = {entry.removeprefix(f"{chunk}.") for entry in found[rank] if entry.startswith(f"{chunk}.")}
        held = {match[1] for label in labels if (match := re.match(r"decoder\.layers\.(\d+)\.", label))}
        assert held == {str(layer) for layer in range(layers)}
        assert any(label.startswith("embedding.") for label in labels) == (number == 0)
        assert any(label.startswith("output_layer.") for label in labels) == (number == len(stages) - 1)
    for (before, giving), (after, taking) in pairwise(stages):
        for micro_batch in range(SHAPES[name].micro_batches):
            given = dumps[before].data[f"{giving}.decoder.TransformerBlock.forward.{micro_batch}"]
            taken = dumps[after].data[f"{taking}.decoder.layers.0.TransformerLayer.forward.{micro_batch}"]
            assert _numbers(given["output"]) == _numbers(_inputs(taken))[:1]
            returned = dumps[after].data[f"{taking}.decoder.layers.0.TransformerLayer.backward.{micro_batch}"]
            received = dumps[before].data[f"{giving}.decoder.TransformerBlock.backward.{micro_batch}"]
            if returned["output"]:
                assert _numbers(received["input"]) == _numbers(returned["output"])[:1]
    shown = [
        _numbers(dumps[0].data[f"Module.0.embedding.LanguageModelEmbedding.forward.{n}"]["output"])
        for n in range(SHAPES[name].micro_batches)
    ]
    assert len({str(numbers) for numbers in shown}) == SHAPES[name].micro_batches


@at_each_level_with_modules
@pytest.mark.parametrize("name", [name for name, shape in SHAPES.items() if shape.expert > 1])
def test_each_rank_records_its_own_experts(recorded: Recorded, name: str) -> None:
    shape = SHAPES[name]
    here = shape.experts // shape.expert
    weights = []
    rows: Counter[str] = Counter()
    for rank in RANKS:
        dump = recorded.dump(rank)
        for layer in range(shape.layers):
            for expert in range(here):
                label = f"Module.0.decoder.layers.{layer}.mlp.experts.local_experts.{expert}"
                for micro_batch in range(shape.micro_batches):
                    record = dump.data[f"{label}.MLP.forward.{micro_batch}"]
                    rows[f"{layer} {micro_batch}"] += next(tensors(record["input_args"]))["shape"][0]
                first = dump.data[f"{label}.linear_fc1.ColumnParallelLinear.forward.0"]
                weights.append(str(_numbers([first["parameters"]["weight"]])))
        others = f".local_experts.{here}."
        assert [entry for entry in dump.data if others in entry] == []
    assert len(set(weights)) == shape.experts * shape.layers
    # Two experts for each token of all the ranks that have tokens of their own.
    tokens = ROWS * LENGTH * (len(RANKS) // shape.tensor)
    assert set(rows.values()) == {2 * tokens}
    assert len(rows) == shape.layers * shape.micro_batches


def _inputs(record: dict[str, Any]) -> list[Any]:
    return [record["input_args"], record["input_kwargs"]]


def _numbers(record: Any) -> list[tuple[Any, ...]]:
    return [(one["shape"], one["Max"], one["Min"], one["Mean"], one["Norm"]) for one in tensors(record)]
