"""What we do is done apart from the run: whatever is on there is off, and on again afterwards."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from probe_patch.runtime.compiled import SHORTCOMING
from probe_patch.runtime.stats.apart import ApartFromTheRun

Around = Callable[[], AbstractContextManager[object]]


@contextmanager
def both(*around: Around) -> Iterator[None]:
    with ExitStack() as stack:
        for enter in around:
            stack.enter_context(enter())
        yield


GRADIENTS: dict[str, Around] = {"gradients": torch.enable_grad, "none": torch.no_grad}
STATES: dict[str, Around] = {
    "nothing": nullcontext,
    "inference": torch.inference_mode,
    "a dispatch mode": TorchDispatchMode,
    "two dispatch modes": partial(both, TorchDispatchMode, TorchDispatchMode),
    "a function mode": TorchFunctionMode,
    "a device": partial(torch.device, "meta"),
    "no functions of subclasses": torch._C.DisableTorchFunctionSubclass,
    "no functions": torch._C.DisableTorchFunction,
    "inference, a dispatch mode": partial(both, torch.inference_mode, TorchDispatchMode),
    "inference, no functions": partial(both, torch.inference_mode, torch._C.DisableTorchFunction),
}


def seen() -> tuple[object, ...]:
    return (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch._C._len_torch_dispatch_stack(),
        torch._C._is_torch_function_enabled(),
        torch._C._is_torch_function_all_disabled(),
        torch._C._len_torch_function_stack(),
    )


@pytest.mark.parametrize("gradients", GRADIENTS)
@pytest.mark.parametrize("state", STATES)
def test_everything_is_off_and_then_as_it_was(state: str, gradients: str) -> None:
    with GRADIENTS[gradients](), STATES[state]():
        before = seen()
        apart = ApartFromTheRun()
        for _ in range(2):
            with apart:
                inside = seen()
                assert inside[:5] == (False, False, 0, False, True)
                assert (apart.had_gradients, apart.was_in_inference_mode) == before[:2]
                with ApartFromTheRun():
                    assert seen() == inside
                assert seen() == inside
            assert seen() == before
        with pytest.raises(KeyError), apart:
            raise KeyError
        assert seen() == before


def test_torch_keeps_it_where_we_look_for_it() -> None:
    if SHORTCOMING is not None:
        pytest.skip("the quick way is compiled")
    from probe_patch.runtime.stats.thread_state import ThreadState

    state = ThreadState()
    with torch.enable_grad(), torch._C.DisableTorchFunctionSubclass():
        before = seen()
        earlier = state.leave()
        inside = seen()
        state.put_back(earlier)
        assert (earlier, inside[0], inside[4], seen()) == (1 | 4, False, True, before)
    with STATES["a dispatch mode"]():
        assert (state.leave(), torch.is_grad_enabled()) == (-1, True)
