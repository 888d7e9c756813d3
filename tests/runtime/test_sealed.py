"""Gradients of what torch does in C: nobody can have a hook inside, and few of its nodes are watched."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any
from zlib import crc32

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from probe_patch.runtime.capture.shares import Passing
from tests.runtime.configs import debugger_with
from tests.runtime.dumps import only_rank, read_dump
from tests.runtime.graphs import nodes_behind
from tests.runtime.toys import Around

Function = Callable[..., Tensor]


def varied(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).requires_grad_()


class Runs(nn.Module):
    """Runs a function as its forward."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.function(*inputs)


class Gradients:
    """A dump at L1 with checksums, and autograd's own gradients with respect to the inputs."""

    def __init__(self, folder: Path, function: Function, inputs: tuple[Tensor, ...], level: str = "L1") -> None:
        statistics = {"data_mode": ["all"], "summary_mode": "md5"}
        debugger = debugger_with(folder, level=level, statistics=statistics)
        model = function if isinstance(function, nn.Module) else Runs(function)
        torch.manual_seed(0)
        expected = model(*inputs)
        weight = torch.rand_like(expected)
        self.own = torch.autograd.grad((expected * weight).sum(), inputs)
        debugger.start(model)
        output = model(*inputs)
        (output * weight).sum().backward()
        self.nodes = nodes_behind(output)
        debugger.stop()
        self.dump = read_dump(only_rank(folder / "dump" / "step0"))
        assert self.dump.meta["problems"] == []

    def recorded(self, entry: str) -> list[Any]:
        return list(self.dump.data[entry]["output"])


def checksum(tensor: Tensor) -> str:
    return f"{crc32(tensor.contiguous().numpy().tobytes()):08x}"


LINEARS: dict[str, tuple[Tensor, ...]] = {
    "1-d": (varied(4), varied(3, 4), varied(3)),
    "2-d": (varied(2, 4), varied(3, 4), varied(3)),
    "3-d": (varied(2, 5, 4), varied(3, 4), varied(3)),
    "4-d": (varied(2, 1, 5, 4), varied(3, 4), varied(3)),
    "without a bias": (varied(2, 5, 4), varied(3, 4)),
    "transposed": (varied(5, 4, 2).detach().permute(2, 0, 1).requires_grad_(), varied(3, 4)),
    "one column": (varied(2, 5, 1), varied(3, 1), varied(3)),
    "a weight in one row": (varied(2, 5, 4), varied(4)),
    "empty": (varied(0, 5, 4), varied(3, 4), varied(3)),
}


@pytest.mark.parametrize("inputs", LINEARS.values(), ids=LINEARS)
def test_shares_have_the_shape_and_the_bytes_of_the_gradients(tmp_path: Path, inputs: tuple[Tensor, ...]) -> None:
    gradients = Gradients(tmp_path, functional.linear, inputs)
    records = gradients.recorded("Functional.linear.0.backward")
    assert [record["shape"] for record in records] == [list(own.shape) for own in gradients.own]
    assert [record["md5"] for record in records] == [checksum(own) for own in gradients.own]


@pytest.mark.parametrize(
    ("entry", "function", "inputs"),
    [
        ("Torch.matmul.0.backward", torch.matmul, (varied(2, 5, 4), varied(4, 3))),
        ("Torch.matmul.0.backward", torch.matmul, (varied(2, 5, 4), varied(2, 4, 3))),
        ("Torch.matmul.0.backward", torch.matmul, (varied(4), varied(4, 3))),
        ("Tensor.__matmul__.0.backward", lambda x, y: x @ y, (varied(3, 2, 5, 4), varied(4, 3))),
        ("Torch.einsum.0.backward", lambda x, y: torch.einsum("bij,kj->bki", x, y), (varied(2, 5, 4), varied(3, 4))),
        ("Torch.t.0.backward", torch.t, (varied(5, 4),)),
        ("Torch.addmm.0.backward", torch.addmm, (varied(3), varied(2, 4), varied(4, 3))),
        ("Functional.bilinear.0.backward", functional.bilinear, (varied(2, 4), varied(2, 3), varied(5, 4, 3))),
    ],
)
def test_functions_of_all_kinds(tmp_path: Path, entry: str, function: Function, inputs: tuple[Tensor, ...]) -> None:
    gradients = Gradients(tmp_path, function, inputs)
    records = gradients.recorded(entry)
    assert [record["shape"] for record in records] == [list(own.shape) for own in gradients.own]
    for record, own in zip(records, gradients.own, strict=True):
        expected = [own.max().item(), own.min().item(), own.mean().item(), own.norm().item()]
        assert [record[key] for key in ("Max", "Min", "Mean", "Norm")] == pytest.approx(expected, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("level", ["L1", "mix"])
def test_one_hook_takes_all_that_a_linear_layer_passes_on(tmp_path: Path, level: str) -> None:
    gradients = Gradients(tmp_path, nn.Linear(4, 3), (varied(2, 5, 4),), level)
    kinds = [type(node).__name__ for node in gradients.nodes]
    assert {"AddmmBackward0", "TBackward0", "ViewBackward0"} <= set(kinds)
    (record, *_) = gradients.recorded("Functional.linear.0.backward")
    assert record["md5"] == checksum(gradients.own[0])
    if level == "mix":
        assert gradients.recorded("Module.Linear.backward.0") == [record]


@pytest.mark.parametrize(
    ("level", "watched"), [("L1", ["AddmmBackward0"]), ("mix", ["AddmmBackward0", "ViewBackward0"])]
)
def test_nodes_that_only_form_gradients_are_watched_for_modules_in_python_alone(
    tmp_path: Path, level: str, watched: list[str]
) -> None:
    debugger = debugger_with(tmp_path, level=level, statistics={"data_mode": ["all"]})
    debugger.start(model := Around(nn.Linear(4, 3)))
    output = model(varied(2, 5, 4))
    assert debugger.service._recording is not None
    capture: Any = debugger.service._recording[0]
    hooks = [reference() or {} for reference in capture._session.gradients._hooked]
    assert sum(isinstance(hook, Passing) for one in hooks for hook in one.values()) == len(watched)
    output.sum().backward()
    debugger.stop()
    dump = read_dump(only_rank(tmp_path / "dump" / "step0"))
    assert [record["shape"] for record in dump.data["Functional.linear.0.backward"]["output"]] == [
        [2, 5, 4],
        [3, 4],
        [3],
    ]


def test_the_same_tensor_at_several_places_of_a_function(tmp_path: Path) -> None:
    square = varied(2, 4, 4)
    gradients = Gradients(tmp_path, lambda x: torch.matmul(x, x), (square,))
    first, second = gradients.recorded("Torch.matmul.0.backward")
    assert first == second
    assert first["md5"] == checksum(gradients.own[0])


def doubling(x: Tensor, weight: Tensor) -> Tensor:
    """A function in Python, in which the user has a hook on what is made on the way."""
    turned = weight.t()
    turned.register_hook(lambda gradient: gradient * 2)  # type: ignore[no-untyped-call]
    return x.view(-1, 4) @ turned


def test_a_hook_inside_a_function_in_python_has_its_say(tmp_path: Path) -> None:
    debugger = debugger_with(tmp_path, level="L1", statistics={"data_mode": ["all"]})
    library: Any = ModuleType("library")
    library.doubling = doubling
    debugger.service.custom_apis.add(library, "doubling")
    inputs = varied(2, 5, 4), varied(3, 4)
    own = torch.autograd.grad(doubling(*inputs).sum(), inputs)
    debugger.start(Runs(doubling))
    torch.autograd.backward(library.doubling(*inputs).sum())
    debugger.stop()
    dump = read_dump(only_rank(tmp_path / "dump" / "step0"))
    (entry,) = [name for name in dump.data if name.endswith("doubling.0.backward")]
    norms = [record["Norm"] for record in dump.data[entry]["output"]]
    assert norms == pytest.approx([one.norm().item() for one in own])
