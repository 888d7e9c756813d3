"""Whether a tensor is the same one still, and as it was; in both ways to tell."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from probe_patch.runtime.stats.states import asked_for_state, state_of

State = Callable[[Tensor], int | None]


@pytest.fixture(params=[state_of, asked_for_state], ids=["as it is asked", "by its methods"])
def state(request: pytest.FixtureRequest) -> State:
    found: State = request.param
    return found


def test_it_stays_as_long_as_nothing_is_written(state: State) -> None:
    tensor = torch.ones(3, requires_grad=True)
    before = state(tensor)
    assert before is not None
    (tensor * 2).sum().backward()  # type: ignore[no-untyped-call]
    assert state(tensor) == before


WRITES: dict[str, Callable[[Tensor], object]] = {
    "in place": lambda tensor: tensor.add_(1),
    "through a view": lambda tensor: tensor[1:].zero_(),
    "into what shares its memory": lambda tensor: tensor.detach().fill_(2.0),
}


@pytest.mark.parametrize("name", WRITES)
def test_each_write_of_torchs_makes_it_another(state: State, name: str) -> None:
    tensor = torch.ones(3)
    found = [state(tensor)]
    for _ in range(3):
        WRITES[name](tensor)
        found.append(state(tensor))
    assert len(set(found)) == 4
    assert None not in found


def test_no_two_tensors_share_one(state: State) -> None:
    tensors = [torch.ones(1) for _ in range(300)]
    tensors += [tensor[:] for tensor in tensors]
    for number, tensor in enumerate(tensors):
        for _ in range(number % 4):
            tensor.add_(1)
    assert len({state(tensor) for tensor in tensors}) == len(tensors)


def test_of_inference_there_is_none(state: State) -> None:
    with torch.inference_mode():
        assert state(torch.ones(2)) is None


def test_of_what_is_written_into_without_end_there_is_none(state: State) -> None:
    tensor = torch.ones(1)
    torch._C._autograd._unsafe_set_version_counter((tensor,), ((1 << 16) - 1,))
    assert state(tensor) is not None
    tensor.add_(1)
    assert state(tensor) is None


def test_both_ways_tell_the_same() -> None:
    tensor = torch.ones(2).add_(1)
    assert state_of(tensor) == asked_for_state(tensor)
