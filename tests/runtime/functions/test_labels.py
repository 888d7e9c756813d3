"""What functions are called in a dump, and which of them are in it."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import relu

from probe_patch.runtime.capture.functions.risk import RiskLevel
from tests.runtime.functions.recording import recorded

x, y = torch.ones(2, 2), torch.full((2, 2), 2.0)
two = 2
i = torch.ones(2, 2, dtype=torch.int64)

NAMED: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "an operator": (lambda: x + y, ["Tensor.__add__"]),
    "a method": (lambda: x.add(y), ["Tensor.add"]),
    "a function": (lambda: torch.add(x, y), ["Torch.add"]),
    "a right operand": (lambda: 1 - x, ["Tensor.__rsub__"]),
    "a right factor": (lambda: 2 * x, ["Tensor.__rmul__"]),
    "a right factor, made by a call": (lambda: 2 * x.exp(), ["Tensor.exp", "Tensor.__rmul__"]),
    "a factor behind what nothing is known of": (lambda: two * x, ["Tensor.__mul__"]),
    "a right divisor": (lambda: 1 / x, ["Tensor.__rtruediv__"]),
    "a comparison, turned round": (lambda: 1 < x, ["Tensor.__gt__"]),  # noqa: SIM300
    "a bitwise operator": (lambda: i & i, ["Tensor.__and__"]),
    "a shift": (lambda: i << i, ["Tensor.__lshift__"]),
    "an index": (lambda: x[0], ["Tensor.__getitem__"]),
    "a matrix product": (lambda: x @ y, ["Tensor.__matmul__"]),
    "a truth": (lambda: bool(x.sum()), ["Tensor.sum", "Tensor.__bool__"]),
    "a name of its own among aliases": (lambda: torch.mm(x, y), ["Torch.mm"]),
    "imported early": (lambda: relu(x), ["Torch.relu"]),
    "of nn.functional, in C": (lambda: F.linear(x, y), ["Functional.linear"]),
    "of nn.functional, in Python": (lambda: F.softmax(x, -1), ["Functional.softmax"]),
    "of a namespace": (lambda: torch.linalg.norm(x), ["Torch.linalg.norm"]),
    "of torch.functional": (lambda: torch.einsum("ij,jk", x, y), ["Torch.einsum"]),
    "of an optimizer": (lambda: torch._foreach_add([x], 1), ["Torch._foreach_add"]),
}


@pytest.mark.parametrize("example", NAMED)
def test_a_function_is_named_as_msprobe_names_it(example: str) -> None:
    work, names = NAMED[example]
    assert recorded(work).names() == names


def test_an_operator_that_assigns_has_a_name_of_its_own() -> None:
    z = x.clone()

    def work() -> None:
        nonlocal z
        z += 1
        z *= 2
        z[0] = 3

    assert recorded(work).names() == ["Tensor.__iadd__", "Tensor.__imul__", "Tensor.__setitem__"]


@pytest.mark.parametrize(
    "work",
    [
        lambda: (x.shape, x.size(), x.dim(), len(x), x.dtype, x.device, x.is_floating_point(), x.numel()),
        lambda: (x.T, x.real, x.data, x.grad, x.requires_grad, x.is_cuda),
        lambda: (x.sum, repr(x), hash(x), x.tolist(), x[0, 0].item),
        lambda: (torch.is_tensor(x), torch.result_type(x, y), torch.get_default_device()),
    ],
)
def test_questions_and_attributes_are_not_recorded(work: Callable[[], Any]) -> None:
    assert [name for name in recorded(work).names() if name != "Tensor.__getitem__"] == []


@pytest.mark.parametrize(
    ("risk", "names"),
    [
        ("CORE", ["Functional.linear", "Tensor.matmul", "Functional.layer_norm"]),
        ("FOCUS", ["Functional.linear", "Tensor.matmul", "Functional.layer_norm", "Tensor.exp"]),
        (
            "ALL",
            [
                *("Functional.linear", "Tensor.matmul", "Functional.layer_norm", "Tensor.exp", "Tensor.view"),
                *("Torch.cat", "Tensor.__getitem__", "Torch.randn"),
            ],
        ),
    ],
)
def test_the_risk_level_chooses(risk: RiskLevel, names: list[str]) -> None:
    def work() -> None:
        F.linear(x, y)
        x.matmul(y)
        F.layer_norm(x, (2,))
        x.exp()
        x.view(4)
        torch.cat([x, y])
        x[0]
        torch.randn(1)

    assert recorded(work, risk).names() == names


def test_calls_of_one_function_are_numbered() -> None:
    assert list(recorded(lambda: x.exp().exp().sin().exp()).parents) == [
        "Tensor.exp.0.forward",
        "Tensor.exp.1.forward",
        "Tensor.sin.0.forward",
        "Tensor.exp.2.forward",
    ]
