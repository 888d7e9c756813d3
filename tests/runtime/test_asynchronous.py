"""Tensors of functional collectives, before and after they are done."""

import pytest
import torch
from torch.distributed._functional_collectives import AsyncCollectiveTensor

from probe_patch.runtime.stats.plain import plain_values


def test_a_tensor_whose_communication_is_done_is_measured_as_what_arrived() -> None:
    arrived = torch.arange(3.0)
    done = AsyncCollectiveTensor(arrived)
    done.completed = True
    values = plain_values(done)
    assert type(values) is torch.Tensor
    assert values.data_ptr() == arrived.data_ptr()


def test_a_tensor_that_is_still_being_communicated_is_not_waited_for() -> None:
    running = AsyncCollectiveTensor(torch.arange(3.0))
    with pytest.raises(ValueError, match="still being communicated"):
        plain_values(running)
    assert not running.completed
