"""The run computes the same bits with the dump on and off, and keeps nothing of it."""

import copy
import gc
import io
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from probe_patch.runtime.capture.backward import Backward
from probe_patch.runtime.capture.functions.mode import FunctionMode
from probe_patch.runtime.capture.hooks import CallHook
from probe_patch.runtime.capture.parameters import OwnParameters
from probe_patch.runtime.capture.recomputed import FUNCTIONS
from probe_patch.runtime.capture.shares import Passing, Share
from probe_patch.runtime.capture.tensor_hooks import GradientHook
from probe_patch.runtime.capture.unhooked import Method
from probe_patch.runtime.debugger import PrecisionDebugger
from tests.runtime.conftest import Configured
from tests.runtime.dumps import read_dump, texts_of
from tests.runtime.graphs import nodes_behind
from tests.runtime.toys import Around, Dropping, Echo, Fails, InPlace, Mlp, Shared, ones

HOOKS = (CallHook, GradientHook, Passing, Method, OwnParameters)
HOOK_FIELDS = [name for name in vars(nn.Module()) if "hooks" in name]


def training_run(make: Callable[[], nn.Module], around: Callable[[nn.Module], Any]) -> dict[str, Any]:
    """Five optimizer steps; everything that a dump could have changed, as bytes and states."""
    torch.manual_seed(1)
    random.seed(1)
    np.random.seed(1)
    model = make()
    optimizer = torch.optim.SGD(model.parameters() if list(model.parameters()) else [ones(1)], lr=0.1)
    x = torch.randn(3, 4, requires_grad=True)
    losses = []
    around(model)
    for _ in range(5):
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


class Rectified(nn.Module):
    """In-place modules between layers with parameters, and in-place functions."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 4), nn.SiLU(inplace=True))

    def forward(self, x: Tensor) -> Any:
        return self.body(x).add_(1.0).mul_(0.5)


class Residual(nn.Module):
    """An input with several uses, so that the order in which gradients add up shows in their bits."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x: Tensor) -> Any:
        for layer in self.layers:
            x = x + layer(x).sin() * 1e-3 + layer(x) + x * 0.7
        return functional.gelu(x)


class Views(nn.Module):
    """Views of one tensor, one of which is overwritten."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.halve = nn.Linear(4, 8), InPlace()

    def forward(self, x: Tensor) -> Any:
        whole = self.linear(x) * 1
        left = whole[:, :4]
        self.halve.relu(left)
        return torch.cat([whole[:, 4:], left], 1)


class Checkpointed(nn.Module):
    """Recomputes a body with a random mask in the backward."""

    use_reentrant = False

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.ReLU(inplace=True), nn.Linear(4, 4))

    def forward(self, x: Tensor) -> Any:
        return checkpoint(self.body, x, use_reentrant=self.use_reentrant)


class CheckpointedReentrant(Checkpointed):
    use_reentrant = True


TOYS = [Mlp, InPlace, Shared, Dropping, Rectified, Residual, Views, Checkpointed, CheckpointedReentrant]


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
@pytest.mark.parametrize("make", TOYS)
def test_losses_gradients_weights_and_random_states_are_the_same_bits(
    make: Callable[[], nn.Module], level: str, configured: Configured, tmp_path: Path
) -> None:
    debugger = configured(level, "all")
    plain = training_run(make, lambda model: None)
    recorded = training_run(make, debugger.start)
    debugger.stop()
    assert recorded == plain
    dump = read_dump(tmp_path / "dump/step0/rank0")
    gaps = [FUNCTIONS] if make is CheckpointedReentrant and level == "mix" else []
    assert [problem["message"] for problem in dump.meta["problems"]] == gaps
    assert any("backward" in entry or "parameters_grad" in entry for entry in dump.data)
    assert any("forward" in entry for entry in dump.data)


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


def users_hook(*_: object) -> None:
    """Stays on copies."""


def objects_of_ours() -> list[object]:
    """What may sit on modules, tensors and nodes, and what only lives as long as these do.

    Compiled, hooks of tensors and nodes are not known to the garbage collector: those are found in plain Python alone.
    """
    return [one for one in gc.get_objects() if issubclass(type(one), (*HOOKS, FunctionMode, Backward, Share))]


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
def test_after_stop_no_hook_is_left_on_parameters_tensors_and_nodes_and_no_mode(
    configured: Configured, tmp_path: Path, level: str
) -> None:
    gelu, add = functional.gelu, Tensor.__add__
    model: Any = Rectified()
    earlier = objects_of_ours()
    users: list[Tensor] = []
    model.body[0].weight.register_hook(users.append)
    x = torch.randn(2, 4, requires_grad=True)
    debugger = configured(level, "all")
    debugger.start(model)
    assert debugger.service._recording is not None
    session: Any = debugger.service._recording[0]._session
    handed_out: list[Any] = [x]
    model.body[0].register_forward_hook(lambda module, args, output: handed_out.append(output))
    handed_out.append(model(x))
    assert (functional.gelu is gelu, Tensor.__add__ is add) == (True, True)
    debugger.stop()
    assert (functional.gelu is gelu, Tensor.__add__ is add) == (True, True)
    assert torch._C._len_torch_function_stack() == 0
    weight, *others = model.parameters()
    assert list(weight._backward_hooks.values()) == [users.append]
    assert [tensor._backward_hooks for tensor in (*others, *handed_out)] == [None] * (3 + 3)
    # A hook of ours on a node would record what it is given, were the session open.
    recorder = session.store.recorder
    recorded = recorder.tensors
    session.is_open = True
    handed_out[-1].sum().backward()
    assert (recorder.tensors - recorded, len(users)) == (0, 1)
    session.is_open = False
    del session, recorder
    assert len(nodes_behind(handed_out[-1])) > 4
    gc.collect()
    assert [one for one in objects_of_ours() if not any(one is other for other in earlier)] == []


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


def saved_and_loaded(model: nn.Module) -> Any:
    stream = io.BytesIO()
    torch.save(model, stream)
    stream.seek(0)
    return torch.load(stream, weights_only=False)


def pickled(model: nn.Module) -> Any:
    data = pickle.dumps(model)
    assert b"probe_patch" not in data
    return pickle.loads(data)


class OwnState(Mlp):
    """Has a say in its state, and in what is scripted of it."""

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "was_asked": True}

    def __prepare_scriptable__(self) -> nn.Module:
        return self.body


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("make", [Mlp, OwnState])
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled, saved_and_loaded])
def test_a_copy_made_while_recording_works_and_is_not_recorded(
    debugger: PrecisionDebugger, copied: Callable[[nn.Module], nn.Module], make: Callable[[], nn.Module]
) -> None:
    model = make()
    model.register_forward_hook(users_hook)
    plain, bare = dict(vars(model)), hook_state(model)
    debugger.start(model)
    before = model(ones(2, 4))
    twin = copied(model)
    expected = twin(ones(2, 4))
    expected.sum().backward()
    assert torch.equal(expected, before)
    assert list(twin._forward_hooks.values()) == [users_hook]
    if copied is copy.copy:
        return
    assert hook_state(twin) == bare
    assert vars(twin).keys() - plain.keys() == ({"was_asked"} if make is OwnState else set())
    assert not any(parameter._backward_hooks for parameter in twin.parameters())
    dump = debugger.service._dumps[debugger.config.folder()]
    debugger.stop()
    assert dump.store.entries == 5
    assert vars(model).keys() == plain.keys()


def rebuilt(state: dict[str, Any]) -> nn.Module:
    model = Rebuilt.__new__(Rebuilt)
    vars(model).update(state)
    return model


class Rebuilt(Mlp):
    """Is copied in a way of its own, as a torch.fx.GraphModule is."""

    def __reduce__(self) -> Any:
        return rebuilt, (dict(vars(self)),)


@pytest.mark.parametrize("copied", [copy.deepcopy, pickled])
def test_what_is_copied_in_a_way_of_its_own_has_nothing_of_ours_either(
    debugger: PrecisionDebugger, copied: Callable[[nn.Module], nn.Module]
) -> None:
    model = Rebuilt()
    debugger.start(model)
    twin = copied(model)
    assert torch.equal(twin(ones(2, 4)), model(ones(2, 4)))
    assert torch.equal(torch.compile(twin, backend="eager", fullgraph=True)(ones(2, 4)), model(ones(2, 4)))
    torch.compiler.reset()
    dump = debugger.service._dumps[debugger.config.folder()]
    debugger.stop()
    assert dump.store.entries == 2 * 5
    assert not any(type(hook).__module__.startswith("probe_patch") for hook in twin._forward_hooks.values())


@pytest.mark.parametrize("level", ["L0", "mix"])
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_a_model_scripted_or_traced_while_recording_is_whole_and_quiet(configured: Configured, level: str) -> None:
    model, x = Mlp(), ones(2, 4)
    expected, children = model(x), dict(model.named_modules())
    debugger = configured(level, "all")
    debugger.start(model)
    traced: Any = torch.jit.trace(model, x, check_trace=False)  # type: ignore[no-untyped-call]
    made: list[Any] = [
        torch.jit.script(model),
        traced,
        torch.jit.script(copy.deepcopy(model)),
    ]
    assert all(torch.equal(one(x), expected) for one in made)
    assert dict(model.named_modules()) == children
    dump = debugger.service._dumps[debugger.config.folder()]
    debugger.stop()
    assert [line for line in texts_of(dump.store.lines) if line.startswith('"Module.')] == []
    assert dump.store.micro_batches == 0
    assert torch.equal(torch.jit.script(model)(x), expected)


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_a_module_that_prepares_itself_for_scripting_is_asked(debugger: PrecisionDebugger) -> None:
    model = OwnState()
    debugger.start(model)
    scripted = torch.jit.script(model)
    debugger.stop()
    assert torch.equal(scripted(ones(2, 4)), model.body(ones(2, 4)))


class Compiling(nn.Module):
    """One of its modules runs compiled."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.inner, self.head = Mlp(), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Any:
        return self.head(self.inner(x))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("in_place", [False, True])
def test_a_compiled_module_is_recorded_as_a_whole_or_named_as_a_gap(
    configured: Configured, tmp_path: Path, backend: str, in_place: bool
) -> None:
    frames: list[object] = []

    def counting(graph: Any, inputs: Any) -> Any:
        frames.append(graph)
        return torch._dynamo.lookup_backend(backend)(graph, inputs)

    x = ones(2, 4).requires_grad_()
    model: Any = Compiling()
    model(x).square().sum().backward()
    expected = [bits(parameter.grad) for parameter in model.parameters() if parameter.grad is not None]
    model = Compiling()
    if in_place:
        model.inner.compile(backend=counting)
    else:
        model.inner = torch.compile(model.inner, backend=counting)
    debugger = configured("L0", "all")
    for _ in range(3):
        model.zero_grad()
        debugger.start(model)
        model(x).square().sum().backward()
        debugger.stop()
    assert [bits(parameter.grad) for parameter in model.parameters() if parameter.grad is not None] == expected
    # Once, and not again because of the hooks of a further start.
    assert len(frames) == 1
    torch.compiler.reset()
    dump = read_dump(tmp_path / "dump/step0/rank0")
    (problem,) = dump.meta["problems"]
    wrapper = "Module.inner.OptimizedModule"
    name, inside = ("Module.inner.Mlp", "Module.inner") if in_place else (wrapper, "Module.inner._orig_mod")
    assert problem["message"].startswith(f"{name} ")
    calls = {entry.rpartition(".")[0] for entry in dump.data}
    recorded = ["Module.Compiling", "Module.head.Linear", *([] if in_place else [wrapper])]
    assert calls == {f"{module}.{way}" for module in recorded for way in ("forward", "backward")} | {
        f"{module}.parameters_grad"
        for module in (
            "Module.head.Linear",
            f"{inside}.norm.LayerNorm",
            f"{inside}.body.up.Linear",
            f"{inside}.body.down.Linear",
        )
    }


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("level", ["L0", "mix"])
def test_outputs_and_state_can_be_saved_while_recording(configured: Configured, level: str) -> None:
    model = Mlp()
    debugger = configured(level, "all")
    debugger.start(model)
    output = model(ones(2, 4))
    stream = io.BytesIO()
    torch.save({"output": output, "state": model.state_dict(keep_vars=True)}, stream)
    stream.seek(0)
    assert torch.equal(torch.load(stream)["output"], output)
    debugger.stop()


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
def test_a_model_compiled_while_recording_is_whole_and_quiet(configured: Configured, level: str) -> None:
    model = Mlp()
    expected = model(ones(2, 4))
    gradients = torch.autograd.grad(expected.square().sum(), list(model.parameters()))

    def check(compiled: Callable[[Tensor], Any]) -> None:
        output = compiled(ones(2, 4))
        assert torch.equal(output, expected)
        model.zero_grad()
        output.square().sum().backward()
        found = [parameter.grad for parameter in model.parameters()]
        assert all(map(torch.equal, found, gradients))  # type: ignore[arg-type]

    debugger = configured(level, "all")
    debugger.start(model)
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    check(compiled)
    dump = debugger.service._dumps[debugger.config.folder()]
    debugger.stop()
    # Parameters get their gradients outside of what is compiled.
    entries = [line.split('"')[1] for line in texts_of(dump.store.lines)]
    assert [entry for entry in entries if entry.startswith("Module.") and "parameters_grad" not in entry] == []
    check(compiled)
    check(torch.compile(model, backend="eager", fullgraph=True))
    torch.compiler.reset()


class Watching(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees every operation, as selective checkpointing does."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def test_a_dispatch_mode_of_the_run_does_not_see_our_operations(debugger: PrecisionDebugger) -> None:
    model = Around(Residual())
    with Watching() as plain:
        model(ones(2, 4).requires_grad_()).sum().backward()
    model.zero_grad()
    debugger.start(model)
    with Watching() as recorded:
        model(ones(2, 4).requires_grad_()).sum().backward()
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
    # Two forwards, one backward, and the gradients of three modules' parameters.
    assert dump.store.entries == 2 * 5 + 5 + 3


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
