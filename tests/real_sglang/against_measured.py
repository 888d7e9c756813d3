"""A dump of one forward, held against what the driver's own hooks measured in it."""

from collections.abc import Sequence
from math import prod, sqrt
from typing import Any

import pytest

from tests.real_sglang.report import Measured, Statistics
from tests.runtime.dumps import DumpOnDisk


def assert_agrees(dump: DumpOnDisk, measured: Sequence[Measured]) -> None:
    """Every call of a sub-module is there and nothing else, under its parent, with its numbers."""
    assert list(dump.data) == [call.name for call in measured]
    assert dump.construct == {call.name: call.parent for call in measured}
    for call in measured:
        entry = dump.data[call.name]
        _assert_all_agree(entry["input_args"], call.inputs)
        _assert_all_agree(entry["output"], call.outputs)


def _assert_all_agree(records: list[Any], measured: Sequence[Statistics | None]) -> None:
    assert len(records) == len(measured)
    for record, statistics in zip(records, measured, strict=True):
        if statistics is not None:
            _assert_agrees(record, statistics)


def _assert_agrees(record: dict[str, Any], exact: Statistics) -> None:
    assert tuple(record["shape"]) == exact.shape
    # A mean may cancel out: it is held against the size of what it is the mean of.
    size = exact.norm / sqrt(prod(exact.shape))
    assert record["Max"] == pytest.approx(exact.largest, rel=1e-6)
    assert record["Min"] == pytest.approx(exact.smallest, rel=1e-6)
    assert record["Mean"] == pytest.approx(exact.mean, rel=0, abs=1e-6 * size)
    assert record["Norm"] == pytest.approx(exact.norm, rel=1e-6)
