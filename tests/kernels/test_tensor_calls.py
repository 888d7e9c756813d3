"""What torch's own functions tell of a tensor is what its methods do, or they are not used."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from probe_patch.runtime.stats import tensor_calls as module
from probe_patch.runtime.stats.tensor_calls import asked, tensor_calls, told
from tests.needs import needs


@pytest.fixture(autouse=True)
def _found_anew() -> Iterator[None]:
    tensor_calls.cache_clear()
    yield
    tensor_calls.cache_clear()


def cut(bytes_left: int) -> Tensor:
    tensor = torch.ones(8, 4)[2:]
    tensor.untyped_storage().resize_(bytes_left)
    return tensor


def inferred() -> Tensor:
    with torch.inference_mode():
        return torch.ones(3)[1:]


TENSORS: dict[str, Callable[[], Tensor]] = {
    "whole": lambda: torch.ones(4, 3),
    "single": lambda: torch.tensor(1.0),
    "view": lambda: torch.ones(4, 3)[1:, ::2],
    "overlapping": lambda: torch.ones(1).expand(5, 5),
    "empty": lambda: torch.empty(0, 3),
    "wide": lambda: torch.ones(3, dtype=torch.complex128)[1:],
    "parameter": lambda: nn.Parameter(torch.ones(3)),
    "result": lambda: nn.Parameter(torch.ones(3)) * 2,
    "detached": lambda: (nn.Parameter(torch.ones(3)) * 2).detach(),
    "conjugated": lambda: torch.ones(3, dtype=torch.complex64).conj(),
    "negated": lambda: torch.ones(3, dtype=torch.complex64).conj().imag,
    "inferred": inferred,
    "without memory": lambda: torch.ones(3, 2, device="meta")[1:],
    "freed": lambda: cut(0),
    "cut short": lambda: cut(5),
}


@pytest.mark.parametrize("name", TENSORS)
def test_they_tell_what_the_methods_do(name: str) -> None:
    calls = tensor_calls()
    needs(calls is not None, "this torch has not all of the functions")
    assert calls is not None
    tensor = TENSORS[name]()
    assert told(calls, tensor) == asked(tensor)


@pytest.mark.parametrize("around", [torch.inference_mode, torch.no_grad, partial(torch.device, "meta"), FakeTensorMode])
def test_they_are_found_whatever_the_run_does(around: Callable[[], AbstractContextManager[object]]) -> None:
    outside = tensor_calls()
    tensor_calls.cache_clear()
    with around():
        assert tensor_calls() == outside


def test_one_that_is_missing_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_NAMES", (*module._NAMES[:-1], "aoti_torch_get_something_else"))
    assert tensor_calls() is None


@pytest.mark.parametrize(("left", "right"), [(0, 1), (3, 4)], ids=["is_neg and is_inference", "size and offset"])
def test_one_that_tells_something_else_is_not_called(monkeypatch: pytest.MonkeyPatch, left: int, right: int) -> None:
    names = list(module._NAMES)
    names[left], names[right] = names[right], names[left]
    monkeypatch.setattr(module, "_NAMES", tuple(names))
    assert tensor_calls() is None


def test_where_a_tensor_cannot_be_found_in_its_object_nothing_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_POINTER", Tensor.__basicsize__)
    assert tensor_calls() is None
