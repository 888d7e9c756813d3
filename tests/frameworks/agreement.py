"""Whether a dump says what an observer saw."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.frameworks.observer import Numbers
from tests.runtime.dumps import DumpOnDisk

MODULE = re.compile(r"(?P<label>Module\..+)\.(?P<kind>forward|backward|parameters_grad)\.(?P<number>\d+)")
ROOT = re.compile(r"Module\.(\d+\.)?[^.\d][^.]*")


def entries(dump: DumpOnDisk, kind: str) -> dict[str, Any]:
    """The entries of sub-modules of one kind: forward, backward or parameters_grad."""
    return {
        entry: record
        for entry, record in dump.data.items()
        if (match := MODULE.fullmatch(entry)) and match["kind"] == kind and not ROOT.fullmatch(match["label"])
    }


def parent(dump: DumpOnDisk, entry: str) -> str | None:
    """The sub-module's entry around this one; a root is none."""
    around: str | None = dump.construct[entry]
    match = None if around is None else MODULE.fullmatch(around)
    return None if match is None or ROOT.fullmatch(match["label"]) else around


def tensors(record: Any) -> Iterator[Any]:
    """The records of tensors in a record, in order."""
    if isinstance(record, list):
        for part in record:
            yield from tensors(part)
    elif isinstance(record, Mapping):
        if record.get("type") in ("torch.Tensor", "torch.distributed.tensor.DTensor"):
            yield record
        elif "type" not in record:
            yield from tensors(list(record.values()))


def assert_calls_agree(dump: DumpOnDisk, seen: Mapping[str, Any]) -> None:
    """Each call of a module has its entry and its parent, and nothing else has."""
    found = entries(dump, "forward")
    assert found
    assert set(found) == set(seen)
    assert {entry: parent(dump, entry) for entry in found} == {entry: call["parent"] for entry, call in seen.items()}


def assert_values_agree(dump: DumpOnDisk, seen: Mapping[str, Any]) -> None:
    """Inputs, outputs and parameters."""
    found = entries(dump, "forward")
    for entry, call in seen.items():
        record = found[entry]
        _assert_tensors([record["input_args"], record["input_kwargs"]], call["inputs"])
        _assert_tensors(record["output"], call["outputs"])
        assert list(record["parameters"]) == list(call["parameters"])
        _assert_tensors(list(record["parameters"].values()), list(call["parameters"].values()))


def assert_gradients_of_outputs_agree(dump: DumpOnDisk, seen: Mapping[str, Any]) -> None:
    """What a gradient reached has a backward entry, inside the backward of what the forward ran in.

    A gradient that reached only what the backward pass computed again may have one.
    """
    found = entries(dump, "backward")
    reached = {_backward(entry): call for entry, call in seen.items() if call["arrived"]}
    reached_again = {_backward(entry): call for entry, call in seen.items() if call["arrived_again"]}
    assert reached
    assert set(reached) <= set(found) <= set(reached) | set(reached_again)
    for entry, record in found.items():
        call = reached[entry] if entry in reached else reached_again[entry]
        arrived = dict(call["arrived"] or call["arrived_again"])
        records = {index: one for index, one in enumerate(record["input"]) if one is not None}
        assert set(records) == set(arrived)
        for index, one in records.items():
            assert_numbers(one, arrived[index])
        around = call["parent"]
        while around is not None and _backward(around) not in found:
            around = seen[around]["parent"]
        assert parent(dump, entry) == (None if around is None else _backward(around))


def assert_parameter_gradients_agree(
    dump: DumpOnDisk, gradients: Mapping[str, Mapping[str, Numbers]], passes: int
) -> None:
    """The gradients of single backward passes add up to ``gradients``, by module and parameter, or are those."""
    found = entries(dump, "parameters_grad")
    left = {label: parameters for label, parameters in gradients.items() if parameters}
    assert left
    assert set(found) == {f"{label}.parameters_grad.{number}" for label in left for number in range(passes)}
    for label, parameters in left.items():
        parts = [found[f"{label}.parameters_grad.{number}"] for number in range(passes)]
        assert all(set(part) == set(parameters) for part in parts)
        for parameter, total in parameters.items():
            records = [part[parameter][0] for part in parts]
            assert [record["shape"] for record in records] == [total["shape"]] * passes
            mean = sum(record["Mean"] for record in records)
            assert mean == pytest.approx(total["Mean"], rel=1e-5, abs=1e-5 * total["scale"])
            if passes == 1:
                assert_numbers(records[0], total)


def _backward(entry: str) -> str:
    return entry.replace(".forward.", ".backward.")


def _assert_tensors(record: Any, seen: list[Numbers]) -> None:
    found = list(tensors(record))
    assert len(found) == len(seen)
    for one, expected in zip(found, seen, strict=True):
        assert (one["dtype"], one["shape"]) == (expected["dtype"], expected["shape"])
        assert_numbers(one, expected)


def assert_numbers(found: Mapping[str, Any], expected: Numbers) -> None:
    """Maximum and minimum exactly, as far as the dump has a number for this dtype."""
    if "Max" not in expected:
        assert found["Max"] is None
        return
    assert (float(found["Max"]), float(found["Min"])) == (expected["Max"], expected["Min"])
    if expected["dtype"].startswith("torch.float"):
        assert found["Mean"] == pytest.approx(expected["Mean"], rel=1e-6, abs=1e-6 * expected["scale"])
        assert found["Norm"] == pytest.approx(expected["Norm"], rel=1e-6)
