"""Which backend measures on which device, and what is said where it is not the one that was to be had."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from probe_patch.errors import BackendUnavailable, ConfigError
from probe_patch.runtime.debugger import PrecisionDebugger
from probe_patch.runtime.problems import Problems
from probe_patch.runtime.stats.backends import Backend
from probe_patch.runtime.stats.backends.reference import Reference
from probe_patch.runtime.stats.backends.registry import MODULES, Backends
from probe_patch.runtime.stats.kinds import Kind
from probe_patch.runtime.stats.rows import Block
from probe_patch.runtime.stats.table import StatisticsTable
from tests.runtime.configs import recorded
from tests.runtime.toys import Around, Echo, ones

HOST = torch.device("cpu")


class Fake(Reference):
    """Measures as the reference, keeps the sizes of its batches, and fails where it is told to."""

    name: str = "fake"

    def __init__(self, device: torch.device, counts: bool, failure: str | None) -> None:
        super().__init__(torch.device("cpu"), counts)
        self.batches: list[int] = []
        self._failure = failure

    def measure(self, values: Sequence[Tensor], kinds: Sequence[Kind], block: Block, first: int) -> None:
        self.batches.append(len(values))
        if self._failure is not None:
            raise RuntimeError(self._failure)
        super().measure(values, kinds, block, first)


Modules = Mapping[str, str]


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Modules:
    """A Triton that serves CUDA and the host, and a cpu that fails when it measures."""

    def triton(device: torch.device, counts: bool) -> Backend:
        if device.type not in ("cuda", "cpu"):
            raise BackendUnavailable("Triton has no such device")
        return Fake(device, counts, None)

    def cpu(device: torch.device, counts: bool) -> Backend:
        if device.type != "cpu":
            raise BackendUnavailable("only for the host")
        return Fake(device, counts, "it does not compile")

    for name, make in {"triton": triton, "cpu": cpu}.items():
        module: Any = ModuleType(f"fake_{name}")
        module.make = make
        monkeypatch.setitem(sys.modules, f"fake_{name}", module)
    return {**{name: f"fake_{name}" for name in MODULES}, "reference": MODULES["reference"]}


@pytest.mark.parametrize(
    ("chosen", "absent", "device", "name", "shortcoming"),
    [
        (None, "", "cuda", "fake", None),
        (None, "", "cpu", "fake", None),
        (None, "", "mps", "reference", None),
        (None, "triton", "cuda", "reference", "triton cannot be had on cuda (No module named 'absent')"),
        ("reference", "", "cuda", "reference", None),
        ("triton", "", "cpu", "fake", None),
        ("triton", "", "mps", "reference", None),
        ("triton", "triton", "cuda", "reference", "PROBE_PATCH_STATS_BACKEND=triton: triton cannot be had on cuda"),
        ("triton", "triton", "cpu", "fake", None),
        ("cpu", "", "cuda", "fake", None),
        ("cpu", "triton", "cuda", "reference", "triton cannot be had on cuda (No module named 'absent')"),
    ],
)
def test_each_device_has_its_backend_or_the_reference(
    modules: Modules, chosen: str | None, absent: str, device: str, name: str, shortcoming: str | None
) -> None:
    found = Backends(chosen, {**modules, absent: "absent"}).on(torch.device(device), False)
    assert found.backend.name == name
    assert (found.shortcoming or "").startswith(shortcoming or "")
    assert (found.shortcoming is None) is (shortcoming is None)


def test_what_cannot_be_had_is_said_once_per_process_and_in_every_dump(
    modules: Modules, caplog: pytest.LogCaptureFixture
) -> None:
    backends = Backends(None, {**modules, "cpu": "absent"})
    for _ in range(2):
        problems = Problems(set())
        table = StatisticsTable(problems, backends=backends)
        row = table.add(ones(4), Kind.FLOAT)
        assert table.read().summary(row, Kind.FLOAT, False).norm == 2.0
        (problem,) = problems.all()
        assert problem.kind == "choosing a statistics backend"
        assert problem.message in caplog.text
    assert len(caplog.messages) == 1


def test_a_backend_that_fails_gives_way_to_the_reference(modules: Modules, caplog: pytest.LogCaptureFixture) -> None:
    backends = Backends(None, modules)
    (fake,) = {backends.on(HOST, False).backend}
    for _ in range(2):
        problems = Problems(set())
        table = StatisticsTable(problems, backends=backends)
        rows = [table.add(torch.full((number,), 1.0), Kind.FLOAT) for number in (1, 4, 9)]
        table.launch()
        rows.append(table.add(ones(16), Kind.FLOAT))
        readings = table.read()
        assert [readings.summary(row, Kind.FLOAT, False).norm for row in rows] == [1.0, 2.0, 3.0, 4.0]
        (problem,) = problems.all()
        assert problem.message.startswith("fake failed on cpu (RuntimeError: it does")
    assert isinstance(fake, Fake)
    assert fake.batches == [3]
    assert len(caplog.messages) == 1


def test_what_one_hook_adds_is_one_batch(modules: Modules) -> None:
    backends = Backends("triton", modules)
    table = StatisticsTable(Problems(set()), backends=backends)
    for count in (3, 1):
        for _ in range(count):
            table.add(ones(2), Kind.FLOAT)
        table.launch()
    table.launch()
    backend = backends.on(HOST, False).backend
    assert isinstance(backend, Fake)
    assert backend.batches == [3, 1]


def test_a_batch_stays_inside_one_block(modules: Modules, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("table", "rows"):
        monkeypatch.setattr(f"probe_patch.runtime.stats.{module}.ROWS_PER_BLOCK", 4)
    backends = Backends("triton", modules)
    table = StatisticsTable(Problems(set()), backends=backends)
    rows = [table.add(torch.full((1,), float(number)), Kind.FLOAT) for number in range(10)]
    readings = table.read()
    assert [readings.summary(row, Kind.FLOAT, False).maximum for row in rows] == list(range(10))
    backend = backends.on(HOST, False).backend
    assert isinstance(backend, Fake)
    assert backend.batches == [4, 4, 2]


def test_values_are_measured_before_the_run_overwrites_them(tmp_path: Path) -> None:
    dump = recorded(tmp_path, torch.nn.Sequential(torch.nn.ReLU(inplace=True)), torch.tensor([-1.0, 2.0]), keys={})
    entry = dump.data["Module.0.ReLU.forward.0"]
    assert (entry["input_args"][0]["Min"], entry["output"][0]["Min"]) == (-1.0, 0.0)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("trition", "PROBE_PATCH_STATS_BACKEND is 'trition'; set it to one of triton, npu, cpu, reference, or unset"),
        ("npu", "PROBE_PATCH_STATS_BACKEND is 'npu', which cannot be had here (no torch_npu); install what is missing"),
    ],
)
def test_a_choice_that_cannot_be_had_fails_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, sentence: str
) -> None:
    def import_module(module: str) -> ModuleType:
        raise BackendUnavailable("no torch_npu")

    monkeypatch.setenv("PROBE_PATCH_STATS_BACKEND", name)
    monkeypatch.setattr("probe_patch.runtime.stats.backends.registry.import_module", import_module)
    with pytest.raises(ConfigError) as raised:
        PrecisionDebugger(dump_path=str(tmp_path))
    assert str(raised.value).startswith(sentence)


@pytest.mark.parametrize("name", ["cpu", "reference", ""])
def test_a_choice_that_can_be_had_measures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("PROBE_PATCH_STATS_BACKEND", name)
    dump = recorded(tmp_path, Around(Echo()), ones(4), keys={})
    assert dump.data["Module.inner.Echo.forward.0"]["input_args"][0]["Norm"] == 2.0
    assert dump.meta["problems"] == []
