"""The run computes the same bits with the dump on and off, and keeps nothing of it."""

import copy
import pickle
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from probe_patch.runtime.debugger import PrecisionDebugger
from tests.runtime.toys import Around, Dropping, Echo, Fails, InPlace, Mlp, Shared, ones

HOOK_FIELDS = [name for name in vars(nn.Module()) if "hooks" in name]


def training_run(make: Callable[[], nn.Module], around: Callable[[nn.Module], Any]) -> dict[str, Any]:
    """Two optimizer steps; everything that a dump could have changed, as bytes and states."""
    torch.manual_seed(1)
    random.seed(1)
    np.random.seed(1)
    model = make()
    optimizer = torch.optim.SGD(model.parameters() if list(model.parameters()) else [ones(1)], lr=0.1)
    x = torch.randn(3, 4, requires_grad=True)
    losses = []
    around(model)
    for _ in range(2):
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(bits(loss))
    return {
        "losses": losses,
        "gradients": [bits(p.grad) for p in (*model.parameters(), x) if p.grad is not None],
        "weights": [bits(p) for p in model.parameters()],
        "torch": bits(torch.get_rng_state()),
        "python": random.getstate(),
        "numpy": str(np.random.get_state()),
        "grad_enabled": torch.is_grad_enabled(),
    }


def bits(tensor: Tensor) -> bytes:
    return (
        tensor.detach().contiguous().view(torch.uint8).numpy().tobytes()
        if tensor.dim()
        else repr(tensor.item()).encode()
    )


@pytest.mark.parametrize("make", [Mlp, InPlace, Shared, Dropping])
def test_losses_gradients_weights_and_random_states_are_the_same_bits(
    make: Callable[[], nn.Module], debugger: PrecisionDebugger
) -> None:
    plain = training_run(make, lambda model: None)
    recorded = training_run(make, debugger.start)
    debugger.stop()
    assert recorded == plain


def hook_state(model: nn.Module) -> list[dict[str, Any]]:
    return [{name: dict(getattr(module, name) or {}) for name in HOOK_FIELDS} for module in model.modules()]


def test_after_stop_no_hook_is_left_and_the_users_are_where_they_were(debugger: PrecisionDebugger) -> None:
    model = Mlp()
    model.norm.register_forward_hook(lambda *_: None)
    before = hook_state(model)
    debugger.start(model)
    assert hook_state(model) != before
    debugger.stop()
    assert hook_state(model) == before


def test_the_output_is_the_object_the_module_returned(debugger: PrecisionDebugger) -> None:
    answer = {"logits": ones(2)}
    model = Around(Echo(answer))
    debugger.start(model)
    assert model() is answer
    debugger.stop()


def test_an_exception_is_the_object_the_module_raised(debugger: PrecisionDebugger) -> None:
    fails = Fails()
    fails.error = ValueError("planned")
    debugger.start(Around(fails))
    with pytest.raises(ValueError, match="planned") as caught:
        fails(ones(1))
    assert caught.value is fails.error
    debugger.stop()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_made_while_recording_works_and_is_not_recorded(
    debugger: PrecisionDebugger, copied: Callable[[nn.Module], nn.Module]
) -> None:
    model = Mlp()
    debugger.start(model)
    twin = copied(model)
    assert torch.equal(twin(ones(2, 4)), model(ones(2, 4)))
    dump = debugger.service._dumps[debugger.config.folder()]
    debugger.stop()
    assert dump.store.entries == 4


def test_a_model_compiled_while_recording_is_whole_and_quiet(debugger: PrecisionDebugger) -> None:
    model = Mlp()
    expected = model(ones(2, 4))
    debugger.start(model)
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    assert torch.equal(compiled(ones(2, 4)), expected)
    dump = debugger.service._dumps[debugger.config.folder()]
    debugger.stop()
    assert dump.store.entries == 0
    assert torch.equal(compiled(ones(2, 4)), expected)


class Watching(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees every operation, as selective checkpointing does."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def test_a_dispatch_mode_of_the_run_does_not_see_our_operations(debugger: PrecisionDebugger) -> None:
    model = Mlp()
    with Watching() as plain:
        model(ones(2, 4))
    debugger.start(model)
    with Watching() as recorded:
        model(ones(2, 4))
    debugger.stop()
    assert recorded.seen == plain.seen
    assert plain.seen


def test_one_dump_takes_passes_inside_and_outside_of_inference_mode(debugger: PrecisionDebugger) -> None:
    model = Mlp()
    debugger.start(model)
    with torch.inference_mode():
        model(ones(2, 4))
    model(ones(2, 4)).sum().backward()
    dump = debugger.service._dumps[debugger.config.folder()]
    debugger.stop()
    assert dump.store.problems.all() == ()
    assert dump.store.entries == 8


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_recording_leaves_the_grad_mode_alone(debugger: PrecisionDebugger, context: Callable[[], Any]) -> None:
    modes = []
    model = Around(Echo())
    model.inner.forward = lambda: modes.append((torch.is_grad_enabled(), torch.is_inference_mode_enabled()))
    with context():
        debugger.start(model)
        model()
    model()
    debugger.stop()
    assert modes == [(False, context is torch.inference_mode), (True, False)]
