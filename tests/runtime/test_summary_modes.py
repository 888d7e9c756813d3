"""summary_mode: which numbers and checksums a record holds, and in which order."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from probe_patch.runtime.capture.contents import NUMBER_KEYS, NumberName, Statistics
from probe_patch.runtime.capture.forms import Look, TensorTexts, tensor_record
from probe_patch.runtime.json_text import BARE
from probe_patch.runtime.problems import Problems
from probe_patch.runtime.record_text import record_text
from probe_patch.runtime.stats.backends import reference
from probe_patch.runtime.stats.kinds import kind_of
from probe_patch.runtime.stats.table import StatisticsTable
from tests.runtime.configs import recorded
from tests.runtime.toys import Around, Echo, Mlp, ones

NAN, INF = math.nan, math.inf
ALL: list[NumberName] = ["max", "min", "mean", "norm", "nan_count", "inf_count", "zero_count"]


def record_of(tmp_path: Path, tensor: object, summary_mode: object) -> Any:
    keys = {"statistics": {"summary_mode": summary_mode}}
    dump = recorded(tmp_path, Around(Echo()), tensor, keys=keys)
    assert dump.meta["problems"] == []
    return dump.data["Module.inner.Echo.forward.0"]["input_args"][0]


@pytest.mark.parametrize(
    ("mode", "keys"),
    [
        ("statistics", "shape Max Min Mean Norm requires_grad"),
        ("md5", "shape Max Min Mean Norm requires_grad md5"),
        ("xor", "shape md5 requires_grad"),
        (["max"], "shape Max requires_grad"),
        (["md5"], "shape requires_grad md5"),
        (["md5", "zero_count", "inf_count", "nan_count", "l2norm", "mean", "min", "max"],
         "shape Max Min Mean Norm NanCount InfCount ZeroCount requires_grad md5"),
        (["l2norm", "norm"], "shape Norm requires_grad"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("tensor", [ones(2), torch.empty(2, device="meta")], ids=["numbers", "none"])
def test_keys_have_one_order(tmp_path: Path, mode: object, keys: str, tensor: Tensor) -> None:
    assert list(record_of(tmp_path, tensor, mode)) == ["type", "dtype", *keys.split()]


@pytest.mark.parametrize(
    ("tensor", "crc", "xor"),
    [
        (torch.arange(8.0), "7a0a407c", "0x7f80000040400000"),
        (torch.tensor(1.5), "5cd8256f", "0x000000003fc00000"),
        (torch.tensor([True, False]), "58c223be", "0x0000000000000001"),
        (torch.empty(0), "00000000", None),
        (torch.empty(2, device="meta"), None, None),
    ],
    ids=["floats", "scalar", "booleans", "empty", "meta"],
)
def test_checksums(tmp_path: Path, tensor: Tensor, crc: str | None, xor: str | None) -> None:
    assert record_of(tmp_path, tensor, "md5")["md5"] == crc
    assert record_of(tmp_path, tensor, "xor")["md5"] == xor


@pytest.mark.parametrize("mode", ["statistics", "md5", "xor", ALL])
@pytest.mark.parametrize("shape", [(3,), (2, 3), ()], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64], ids=str)
def test_a_tensor_of_zeros_that_lies_nowhere_is_one_of_zeros(
    tmp_path: Path, mode: object, shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    nowhere = torch._efficientzerotensor(shape, dtype=dtype)
    assert nowhere._is_zerotensor()
    found = record_of(tmp_path / "nowhere", nowhere, mode)
    assert found == record_of(tmp_path / "there", torch.zeros(shape, dtype=dtype), mode)


def test_a_checksum_is_of_what_the_values_were_when_they_were_seen(tmp_path: Path) -> None:
    dump = recorded(tmp_path, torch.nn.Sequential(torch.nn.ReLU(inplace=True)), torch.tensor([-1.0, 2.0]),
                    keys={"statistics": {"summary_mode": "md5"}})  # fmt: skip
    entry = dump.data["Module.0.ReLU.forward.0"]
    assert entry["input_args"][0]["md5"] != entry["output"][0]["md5"]


def numbers(tensor: Tensor, names: list[NumberName]) -> dict[str, Any]:
    problems = Problems(set())
    contents = Statistics(problems, names)
    kind = kind_of(tensor)
    contents.take(tensor, kind)
    contents.launch()
    look = Look("torch.Tensor", tensor.dtype, tuple(tensor.shape), False, kind)
    texts = TensorTexts(0, [look], {}, contents.read(BARE))
    found = json.loads(record_text(tensor_record(0), texts, BARE))
    assert problems.all() == ()
    return {name: found[NUMBER_KEYS[name]] for name in names}


@pytest.mark.parametrize(
    ("tensor", "expected"),
    [
        (torch.tensor([NAN, INF, -INF, 0.0, -0.0, 1.0]), (NAN, NAN, NAN, NAN, 1, 2, 2)),
        (torch.tensor([3.0, -4.0]), (3.0, -4.0, -0.5, 5.0, 0, 0, 0)),
        (torch.tensor([0.0, 2.0]).to(torch.float8_e4m3fn), (2.0, 0.0, 1.0, 2.0, 0, 0, 1)),
        (torch.tensor([INF, NAN]).to(torch.float8_e5m2), (NAN, NAN, NAN, NAN, 1, 1, 0)),
        (torch.tensor([0.0, NAN], dtype=torch.bfloat16), (NAN, NAN, NAN, NAN, 1, 0, 1)),
        (torch.tensor([3 + 4j, 0j]), (5.0, 0.0, 2.5, 5.0, 0, 0, 1)),
        (torch.tensor([complex(INF, NAN), complex(NAN, 1)]), (NAN, NAN, NAN, NAN, 2, 1, 0)),
        (torch.tensor([2**63 - 1, 0]), (2**63 - 1, 0, 2.0**62, 2.0**63, 0, 0, 1)),
        (torch.tensor([2**64 - 1, 0], dtype=torch.uint64), (2**64 - 1, 0, 2.0**63, 2.0**64, 0, 0, 1)),
        (torch.tensor([1, 0], dtype=torch.uint16), (1, 0, 0.5, 1.0, 0, 0, 1)),
        (torch.tensor([True, False, False]), (True, False, None, None, 0, 0, 2)),
        (torch.tensor(-2.0), (-2.0, -2.0, -2.0, -2.0, 0, 0, 0)),
        (torch.tensor(0), (0, 0, 0, 0, 0, 0, 1)),
        (torch.tensor(False), (False, False, None, None, 0, 0, 1)),
        (torch.full((4,), 1e200, dtype=torch.float64), (1e200, 1e200, 1e200, 2e200, 0, 0, 0)),
    ],
    ids=str,
)
@pytest.mark.parametrize(("backend", "piece"), [("reference", 1), ("reference", 1 << 22), ("cpu", 1 << 22)])
def test_each_number_is_the_same_alone_and_with_the_others(
    monkeypatch: pytest.MonkeyPatch, tensor: Tensor, expected: tuple[Any, ...], backend: str, piece: int
) -> None:
    monkeypatch.setenv("PROBE_PATCH_STATS_BACKEND", backend)
    monkeypatch.setattr("probe_patch.runtime.stats.backends.reference.CHUNK_ELEMENTS", piece)
    wanted = dict(zip(ALL, expected, strict=True))
    together = numbers(tensor, ALL)
    alone = {name: numbers(tensor, [name])[name] for name in ALL}
    for name, value in wanted.items():
        assert together[name] == pytest.approx(value, rel=1e-12, nan_ok=True) if value is not None else True
        assert type(together[name]) is type(value)
        assert repr(alone[name]) == repr(together[name]), name


def test_nothing_is_counted_that_nobody_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROBE_PATCH_STATS_BACKEND", "reference")
    monkeypatch.setattr(reference, "count", lambda *_: pytest.fail("nobody asked for a count"))
    assert numbers(torch.tensor([NAN, 1.0]), ["max"]) == {"max": pytest.approx(NAN, nan_ok=True)}


def test_counting_never_asks_the_device_for_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("item", "tolist", "cpu", "numpy", "__bool__", "__float__", "__int__"):
        monkeypatch.setattr(Tensor, name, lambda *_: pytest.fail("the host waited for the device"))
    problems = Problems(set())
    table = StatisticsTable(problems, counts=True)
    for tensor in (torch.ones(3), torch.arange(3), torch.tensor([True]), torch.ones(2, dtype=torch.complex64)):
        kind = kind_of(tensor)
        assert kind is not None
        table.add(tensor, kind)
    table.launch()
    assert problems.all() == ()


def test_a_structure_has_stacks_and_parents_and_measures_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROBE_PATCH_STATS_BACKEND", "reference")
    monkeypatch.setattr(reference, "measure", lambda *_: pytest.fail("something was measured"))
    dump = recorded(tmp_path, Mlp(), ones(2, 4), keys={"task": "structure"})
    assert dump.data == {}
    assert dump.construct["Module.body.up.Linear.forward.0"] == "Module.body.Sequential.forward.0"
    listed = [entry for entries, _ in dump.stack.values() for entry in entries]
    assert sorted(listed) == sorted(dump.construct)
    assert (dump.meta["entries"], dump.meta["tensors"], dump.meta["problems"]) == (len(listed), 0, [])


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_storage_that_was_freed_is_not_read(tmp_path: Path, task: str) -> None:
    freed = ones(4)
    freed.untyped_storage().resize_(0)
    dump = recorded(tmp_path, Around(Echo()), freed, keys={"task": task, task: {"summary_mode": "md5"}})
    record = dump.data["Module.inner.Echo.forward.0"]["input_args"][0]
    assert (record["shape"], record["Max"], record["md5"], "data_name" in record) == ([4], None, None, False)
