"""Which device gets which kernels, without one."""

from types import SimpleNamespace

import pytest
import torch

from probe_patch.errors import BackendUnavailable
from probe_patch.runtime.stats.backends.triton import make

CUDA = torch.device("cuda", 1)


@pytest.mark.parametrize(
    ("capability", "total", "e4m3"),
    [
        ((8, 0), "fp64", "uint8"),
        ((8, 6), "fp32", "uint8"),
        ((8, 9), "fp32", "fp8e4nv"),
        ((9, 0), "fp64", "fp8e4nv"),
        ((10, 0), "fp64", "fp8e4nv"),
        ((10, 3), "fp32", "fp8e4nv"),
        ((12, 0), "fp32", "fp8e4nv"),
    ],
)
@pytest.mark.parametrize("counts", [False, True])
def test_by_capability(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], total: str, e4m3: str, counts: bool
) -> None:
    capabilities = {CUDA: capability}
    monkeypatch.setattr(torch.cuda, "get_device_capability", capabilities.__getitem__)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(multi_processor_count=132))
    made = make(CUDA, counts)
    variant = {name: plan.variant for name, plan in made._plans.items()}
    assert str(variant[torch.bfloat16].total) == total
    assert variant[torch.float8_e4m3fn].words.name == e4m3
    assert made.accumulator is torch.float64
    assert made._tuning.programs == (264 if counts else 528)


@pytest.mark.parametrize("device", ["cpu", "meta", "mps"])
def test_only_for_cuda(device: str) -> None:
    with pytest.raises(BackendUnavailable, match="run on CUDA devices"):
        make(torch.device(device), False)


def test_not_for_what_triton_does_not_compile_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (6, 1))
    with pytest.raises(BackendUnavailable, match="and later"):
        make(CUDA, False)


def test_not_for_rocm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "hip", "6.0")
    with pytest.raises(BackendUnavailable, match="run on CUDA devices"):
        make(CUDA, False)
