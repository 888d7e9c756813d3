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
        if str(record.get("type", "")).startswith("torch.Tensor"):
            yield record
        elif "type" not in record:
            yield from tensors(list(record.values()))


def assert_agree(record: Any, seen: list[Numbers]) -> None:
    found = list(tensors(record))
    assert [(one["dtype"], one["shape"]) for one in found] == [(one["dtype"], one["shape"]) for one in seen]
    for one, expected in zip(found, seen, strict=True):
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
