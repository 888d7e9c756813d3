"""Models of transformers: training and generation compute the same bits, copies work, and the entries are right."""

import importlib.util
from pathlib import Path

import pytest

from tests.frameworks.agreement import (
    assert_calls_agree,
    assert_gradients_of_outputs_agree,
    assert_parameter_gradients_agree,
    assert_values_agree,
)
from tests.frameworks.hugging_face.families import COPIES, FAMILIES, NEW_TOKENS
from tests.frameworks.ranks import Result, launch
from tests.frameworks.recording import LEVELS, OBSERVED_STEP, STEPS, dump_path_of
from tests.needs import needs
from tests.runtime.dumps import DumpOnDisk, read_dump

each_family = pytest.mark.parametrize("family", FAMILIES)
each_level = pytest.mark.parametrize("level", LEVELS)
at_each_level_with_modules = pytest.mark.parametrize("level", ["L0", "mix"])


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hugging_face")


@pytest.fixture(scope="module")
def result(scratch: Path) -> Result:
    needs(importlib.util.find_spec("transformers") is not None, "transformers is not there: make venv")
    (found,) = launch("tests.frameworks.hugging_face.program", 1, scratch)
    return found


@pytest.fixture
def dump(result: Result, scratch: Path, family: str, level: str) -> DumpOnDisk:
    """Of the step that plain hooks have seen too."""
    return read_dump(dump_path_of(scratch, family, level) / f"step{OBSERVED_STEP}" / "rank0")


@each_level
@each_family
def test_five_steps_compute_the_same_bits_recorded_or_not(result: Result, family: str, level: str) -> None:
    runs = result[family]["runs"]
    assert runs[level] == runs["plain"] == runs["observed"]
    assert len(set(runs["plain"]["weights"])) == STEPS


@each_level
@each_family
def test_generation_gives_the_same_tokens_recorded_or_not(
    result: Result, scratch: Path, family: str, level: str
) -> None:
    generated = result[family]["generated"]
    assert generated[level] == generated["plain"]
    assert generated["plain"]["tokens"]["greedy"] != generated["plain"]["tokens"]["sampled"]
    for step in (0, 1):
        dump = read_dump(dump_path_of(scratch, f"{family} generating", level) / f"step{step}" / "rank0")
        assert dump.meta["problems"] == []
        passes = [f"Module.lm_head.Linear.forward.{number}" for number in range(NEW_TOKENS)]
        assert [entry for entry in dump.data if "lm_head" in entry] == (passes if level != "L1" else [])
        assert [entry for entry in dump.data if "backward" in entry or "_grad" in entry] == []


@each_level
@each_family
def test_after_each_stop_nothing_is_left(result: Result, family: str, level: str) -> None:
    assert result[family]["left"][level] == [[]] * STEPS
    assert all(result[family]["during"][level])


@each_level
@each_family
def test_every_step_is_recorded_without_problems(scratch: Path, result: Result, family: str, level: str) -> None:
    for step in range(STEPS):
        meta = read_dump(dump_path_of(scratch, family, level) / f"step{step}" / "rank0").meta
        assert (meta["entries"] > 0, meta["problems"]) == (True, [])


@at_each_level_with_modules
@each_family
def test_each_call_of_a_module_has_its_entry_and_its_parent(result: Result, dump: DumpOnDisk, family: str) -> None:
    assert_calls_agree(dump, result[family]["calls"])
    assert (dump.meta["recomputed"] > 0) == ("checkpointing" in family)


@at_each_level_with_modules
@each_family
def test_inputs_outputs_and_parameters_are_what_plain_hooks_see(result: Result, dump: DumpOnDisk, family: str) -> None:
    assert_values_agree(dump, result[family]["calls"])


@at_each_level_with_modules
@each_family
def test_the_gradients_of_outputs_are_what_plain_hooks_see(result: Result, dump: DumpOnDisk, family: str) -> None:
    assert_gradients_of_outputs_agree(dump, result[family]["calls"])


@at_each_level_with_modules
@each_family
def test_the_gradients_of_parameters_are_what_training_is_left_with(
    result: Result, dump: DumpOnDisk, family: str
) -> None:
    assert_parameter_gradients_agree(dump, result[family]["gradients"], 1)


@each_level
@pytest.mark.parametrize("way", COPIES)
def test_copies_made_while_recording_and_after_it_compute_the_same_bits(result: Result, level: str, way: str) -> None:
    copied = result["copies"][f"{level} {way}"]
    assert (copied["during"], copied["after"], copied["itself"], copied["left"]) == (True, True, True, [])


@at_each_level_with_modules
@pytest.mark.parametrize("way", COPIES)
def test_copies_and_compiled_models_are_not_recorded(result: Result, level: str, way: str) -> None:
    recorded = [entry for entry in result["copies"][f"{level} {way}"]["entries"] if entry.startswith("Module.")]
    # A compiled model's parameters are the recorded model's, and gradients arrive at them outside of what is compiled.
    assert [entry for entry in recorded if not (way == "torch.compile" and ".parameters_grad." in entry)] == []
