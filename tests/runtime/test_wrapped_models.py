"""Gradients of parameters where something stands between the module and autograd: DDP, FSDP, fused kernels."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.nn.parallel import DistributedDataParallel

from tests.runtime.conftest import Configured
from tests.runtime.dumps import DumpOnDisk, read_dump
from tests.runtime.toys import Around, ones


def layers() -> Any:
    torch.manual_seed(4)
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))


def gradients_of_each(batches: list[Tensor]) -> list[dict[str, Tensor]]:
    """By the plain model: of each batch, each parameter's gradient."""
    model, found = layers(), []
    for batch in batches:
        model.zero_grad()
        model(batch).square().sum().backward()
        found.append({name: parameter.grad.clone() for name, parameter in model.named_parameters()})
    return found


def norms(dump: DumpOnDisk) -> dict[str, float]:
    """Of each recorded gradient of a parameter."""
    return {
        f"{entry}.{name}": gradient["Norm"]
        for entry, record in dump.data.items()
        if "parameters_grad" in entry
        for name, (gradient,) in record.items()
    }


@pytest.fixture
def group(tmp_path: Path) -> Iterator[None]:
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/rendezvous", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def fully_sharded(use_orig_params: bool) -> Any:
    model = layers()
    model[2] = FullyShardedDataParallel(model[2], use_orig_params=use_orig_params, device_id=torch.device("cpu"))
    return FullyShardedDataParallel(model, use_orig_params=use_orig_params, device_id=torch.device("cpu"))


def fully_sharded_by_function() -> Any:
    fully_shard = pytest.importorskip("torch.distributed.fsdp", reason="torch has it from 2.6 on").fully_shard
    model, mesh = layers(), init_device_mesh("cpu", (1,))
    fully_shard(model[2], mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


WRAPPED = "_fsdp_wrapped_module"


@pytest.mark.usefixtures("group")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("make", "names"),
    [
        (lambda: DistributedDataParallel(layers()), ("module.0.Linear", "module.2.Linear")),
        (lambda: DistributedDataParallel(layers(), static_graph=True), ("module.0.Linear", "module.2.Linear")),
        (lambda: fully_sharded(use_orig_params=True), (f"{WRAPPED}.0.Linear", f"{WRAPPED}.2.{WRAPPED}.Linear")),
        (fully_sharded_by_function, ("0.Linear", "2.FSDPLinear")),
    ],
    ids=["DDP", "DDP with a static graph", "FSDP", "fully_shard"],
)
def test_a_wrapper_leaves_parameters_their_gradients_before_any_reduction(
    configured: Configured, tmp_path: Path, make: Callable[[], Any], names: tuple[str, str]
) -> None:
    batches = [ones(2, 4), 3 * ones(2, 4)]
    expected = gradients_of_each(batches)
    model, debugger = make(), configured("L0", "backward")
    debugger.start(model)
    for batch in batches:
        model(batch).square().sum().backward()
    debugger.stop()
    dump = read_dump(tmp_path / "dump/step0/rank0")
    assert dump.meta["problems"] == []
    assert norms(dump) == {
        f"Module.{label}.parameters_grad.{number}.{name}": pytest.approx(
            expected[number][f"{place}.{name}"].norm().item(), rel=1e-5
        )
        for number in range(2)
        for place, label in zip((0, 2), names, strict=True)
        for name in ("weight", "bias")
    }


@pytest.mark.usefixtures("group")
@pytest.mark.filterwarnings("ignore")
def test_flat_parameters_have_flat_gradients(configured: Configured, tmp_path: Path) -> None:
    (expected,) = gradients_of_each([ones(2, 4)])
    model, debugger = fully_sharded(use_orig_params=False), configured("L0", "backward")
    debugger.start(model)
    model(ones(2, 4)).square().sum().backward()
    debugger.stop()
    found = norms(read_dump(tmp_path / "dump/step0/rank0"))
    flat = {
        place: torch.cat([expected[f"{place}.{name}"].flatten() for name in ("weight", "bias")]) for place in (0, 2)
    }
    assert found == {
        f"Module.{label}.parameters_grad.0._flat_param": pytest.approx(flat[place].norm().item(), rel=1e-5)
        for place, label in ((0, f"{WRAPPED}.Sequential"), (2, f"{WRAPPED}.2.{WRAPPED}.Linear"))
    }


@pytest.mark.usefixtures("group")
def test_without_synchronisation_ddp_changes_nothing(configured: Configured, tmp_path: Path) -> None:
    (expected,) = gradients_of_each([ones(2, 4)])
    model, debugger = DistributedDataParallel(layers()), configured("L0", "backward")
    debugger.start(model)
    with model.no_sync():
        model(ones(2, 4)).square().sum().backward()
    debugger.stop()
    found = norms(read_dump(tmp_path / "dump/step0/rank0"))
    assert found["Module.module.2.Linear.parameters_grad.0.bias"] == pytest.approx(expected["2.bias"].norm().item())
    assert len(found) == 4


class Accumulating(torch.autograd.Function):
    """Adds the weight's gradient to its main_grad, as Megatron's fused kernel does, and hands on what holds none."""

    @staticmethod
    def forward(context: Any, x: Tensor, weight: Tensor) -> Tensor:
        context.save_for_backward(x, weight)
        return x @ weight.t()

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> Any:
        x, weight = context.saved_tensors
        weight.main_grad += gradients[0].t() @ x
        weight.grad_added_to_main_grad = True
        return gradients[0] @ weight, torch.full_like(weight, 77.0)


class Fused(nn.Linear):
    def forward(self, x: Tensor) -> Any:
        return Accumulating.apply(x, self.weight) + self.bias  # type: ignore[no-untyped-call]


def test_a_gradient_that_a_fused_kernel_has_added_elsewhere_is_a_stated_gap(
    configured: Configured, tmp_path: Path
) -> None:
    model, debugger = Around(Fused(4, 4)), configured("L0", "backward")
    weight: Any = model.inner.weight
    weight.main_grad, weight.grad_added_to_main_grad = torch.zeros(4, 4), False
    debugger.start(model)
    for _ in range(2):
        model(ones(2, 4)).sum().backward()
    debugger.stop()
    dump = read_dump(tmp_path / "dump/step0/rank0")
    (problem,) = dump.meta["problems"]
    assert (problem["kind"], problem["count"]) == ("recording a parameter's gradient", 2)
    assert problem["message"].startswith("a fused kernel added the gradient of weight of Module.inner.Fused to its")
    assert norms(dump) == {f"Module.inner.Fused.parameters_grad.{number}.bias": 4.0 for number in range(2)}


def test_what_stands_in_for_a_parameter_has_the_gradient(configured: Configured, tmp_path: Path) -> None:
    model: Any = Around(nn.Linear(4, 1, bias=False))
    stand_in = 5 * ones(1, 4)
    stand_in.requires_grad_()
    debugger = configured("L0", "backward")
    debugger.start(model)
    for _ in range(2):
        torch.func.functional_call(model, {"inner.weight": stand_in}, (ones(2, 4),)).sum().backward()
    model(3 * ones(2, 4)).sum().backward()
    debugger.stop()
    found = norms(read_dump(tmp_path / "dump/step0/rank0"))
    assert found == {f"Module.inner.Linear.parameters_grad.{k}.weight": norm for k, norm in enumerate((4.0, 4.0, 12.0))}
    assert stand_in._backward_hooks is None
