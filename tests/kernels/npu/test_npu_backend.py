"""The NPU's backend by torch's operators, on the host: numbers, accuracy, and which way is chosen."""

import math
import sys
from types import ModuleType

import pytest
import torch
from torch import Tensor

from probe_patch.errors import BackendUnavailable
from probe_patch.runtime.stats.backends import npu, reference
from probe_patch.runtime.stats.backends.npu import NpuOperators, make
from probe_patch.runtime.stats.backends.reference import Reference
from probe_patch.runtime.stats.kinds import kind_of
from probe_patch.runtime.stats.rows import Block

HOST = torch.device("cpu")
NAN, INF = math.nan, math.inf


def rows_of(backend: NpuOperators | Reference, values: Tensor) -> tuple[list[float], list[int]]:
    block = Block(HOST, backend.accumulator)
    block.words.zero_()
    kind = kind_of(values)
    assert kind is not None
    backend.measure([values], [kind], block, 1)
    return block.floats[1].tolist(), block.integers[1].tolist()


CASES: dict[str, Tensor] = {
    "normal": torch.randn(1000),
    "positive": torch.rand(100_003) + 1,
    "half": torch.randn(777).half() * 100,
    "bfloat16": torch.randn(33, 31).bfloat16(),
    "fp8": torch.randn(100).to(torch.float8_e4m3fn),
    "complex": torch.randn(100, dtype=torch.complex64),
    "int64": torch.tensor([2**62 + 1, -(2**62) - 3, 0, 7]),
    "uint64": torch.tensor([5, -1, 0]).view(torch.uint64),
    "uint16": torch.tensor([5, 60_000, 0]).to(torch.uint16),
    "int8": torch.randint(-128, 128, (500,)).to(torch.int8),
    "bool": torch.tensor([True, False]),
    "scalar": torch.tensor(2.5),
    "one": torch.tensor([[-3.0]]),
    "huge": torch.tensor([1e30, -2e30, 3.0]),
    "tiny": torch.tensor([1e-30, 2e-30]),
    "overflowing": torch.full((100,), 2e37),
    "nan": torch.tensor([1.0, NAN, INF]),
    "infinities": torch.tensor([1.0, INF, 0.0]),
    "both-infinities": torch.tensor([-INF, INF]),
    "zeros": torch.zeros(40),
    "transposed": torch.randn(70, 50).T[::3],
    "expanded": torch.randn(70, 1).expand(70, 90),
}


@pytest.mark.parametrize("values", CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("chunk", [64, 1 << 22])
def test_rows_are_the_references(monkeypatch: pytest.MonkeyPatch, values: Tensor, chunk: int) -> None:
    expected_floats, expected_integers = rows_of(Reference(HOST, True), values)
    monkeypatch.setattr(reference, "CHUNK_ELEMENTS", chunk)
    floats, integers = rows_of(NpuOperators(True), values)
    assert integers == expected_integers
    if values.dtype is torch.bool:
        return
    scale = values.to(torch.complex128).abs().mean().item()
    first = 0 if values.is_floating_point() or values.is_complex() else 2
    for one, other in list(zip(floats, expected_floats, strict=True))[first:]:
        assert one == pytest.approx(other, rel=1e-6, abs=scale * 1e-6 if math.isfinite(scale) else 0, nan_ok=True)


def test_millions_of_values_keep_to_the_promise() -> None:
    values = torch.rand(5_000_000) + 0.5
    floats, _ = rows_of(NpuOperators(False), values)
    exact = values.double()
    assert floats[2] == pytest.approx(exact.mean().item(), rel=2e-7)
    assert floats[3] == pytest.approx(exact.norm().item(), rel=2e-7)


def test_it_is_for_npus_only() -> None:
    with pytest.raises(BackendUnavailable, match="cpu"):
        make(HOST, counts=False)


@pytest.mark.parametrize(("backends", "by_triton"), [({"nvidia": 0}, False), ({"ascend": 0}, True), (None, False)])
def test_the_kernels_are_used_where_they_compile_for_npus(
    monkeypatch: pytest.MonkeyPatch, backends: dict[str, int] | None, by_triton: bool
) -> None:
    module = ModuleType("triton.backends")
    module.backends = backends  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "triton", None if backends is None else ModuleType("triton"))
    monkeypatch.setitem(sys.modules, "triton.backends", None if backends is None else module)
    assert npu._has_triton_for_npus() is by_triton
