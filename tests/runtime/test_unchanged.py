"""What a module and the function it is made of are both given is looked at once, and never when it could have changed.

The writers go behind torch's back, as a kernel of the user's own does: numpy leaves a tensor's version as it is.
"""

import dis
import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules import module as modules
from torch.overrides import TorchFunctionMode

from probe_patch.runtime.capture.records import Recorder
from probe_patch.runtime.capture.unchanged import SINGLE_CALLS
from probe_patch.runtime.debugger import PrecisionDebugger
from tests.interpreted import Replace
from tests.runtime.configs import debugger_with
from tests.runtime.dumps import DumpOnDisk, only_rank, read_dump
from tests.runtime.toys import Around

BEFORE, AFTER = 1.0, 7.0


def overwrite(tensor: Tensor) -> None:
    version = tensor._version
    tensor.detach().numpy()[...] = AFTER
    assert tensor._version == version


def maximum(dump: DumpOnDisk, entry: str, *path: Any) -> Any:
    record = dump.data[entry]
    for key in path:
        record = record[key]
    return record["Max"]


@pytest.fixture
def debugger(tmp_path: Path) -> PrecisionDebugger:
    return debugger_with(tmp_path, level="mix", statistics={"data_mode": ["forward"]})


def dumped(debugger: PrecisionDebugger, model: nn.Module, *inputs: Tensor) -> DumpOnDisk:
    with torch.no_grad():
        debugger.start(model)
        model(*inputs)
        debugger.stop()
    return read_dump(only_rank(debugger.config.folder() / "step0"))


def linear() -> nn.Linear:
    made = nn.Linear(2, 2, bias=False)
    nn.init.eye_(made.weight)
    return made


@pytest.mark.parametrize(
    ("module", "looked_at"),
    [
        pytest.param(nn.Linear(2, 3), ["input", "weight", "bias", "output"], id="Linear"),
        pytest.param(nn.LayerNorm(2), ["input", "weight", "bias", "output"], id="LayerNorm"),
        pytest.param(nn.GELU(), ["input", "output"], id="GELU"),
    ],
)
def test_each_tensor_is_looked_at_once(
    debugger: PrecisionDebugger, replace: Replace, module: nn.Module, looked_at: list[str]
) -> None:
    seen: list[tuple[int, ...]] = []

    def counted(recorder: Recorder, tensor: Tensor, place: str) -> Any:
        seen.append(tuple(tensor.shape))
        return original(recorder, tensor, place)

    original: Any = getattr(Recorder, "_looked_at", None)
    replace(Recorder, "_looked_at", counted)
    dump = dumped(debugger, Around(module), torch.ones(1, 2))
    around = 2  # the input and the output of what is around it
    assert len(seen) == len(looked_at) + around
    assert dump.meta["tensors"] == 2 * len(looked_at) + around
    entry = f"Module.inner.{type(module).__name__}.forward.0"
    (function,) = (name for name in dump.data if name.startswith("Functional."))
    assert dump.data[entry]["output"] == dump.data[function]["output"]
    assert dump.data[entry]["input_args"] == dump.data[function]["input_args"][:1]


class Writes(nn.Linear):
    """A subclass with a kernel of its own behind the function."""

    def forward(self, x: Tensor) -> Tensor:
        y = functional.linear(x, self.weight)
        overwrite(y)
        return y


def subclassed(module: nn.Linear) -> nn.Linear:
    module.__class__ = Writes
    return module


def with_a_forward_of_its_own(module: nn.Linear) -> nn.Linear:
    module.forward = lambda x: Writes.forward(module, x)  # type: ignore[method-assign, assignment, arg-type]
    return module


def hooked(module: nn.Linear) -> nn.Linear:
    module.register_forward_hook(lambda module, args, output: overwrite(output))
    return module


@contextmanager
def hooked_globally() -> Iterator[None]:
    hook = modules.register_module_forward_hook(
        lambda module, args, output: overwrite(output) if type(module) is nn.Linear else None
    )
    try:
        yield
    finally:
        hook.remove()


@contextmanager
def patched(forward: Any = Writes.forward) -> Iterator[None]:
    original = nn.Linear.forward
    nn.Linear.forward = forward  # type: ignore[method-assign]
    try:
        yield
    finally:
        nn.Linear.forward = original  # type: ignore[method-assign]


def wrapped() -> AbstractContextManager[None]:
    """What it says of itself is torch's."""
    return patched(functools.wraps(nn.Linear.forward)(Writes.forward))


class WritesBehindFunctions(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        output = func(*args, **(kwargs or {}))
        if func is functional.linear:
            overwrite(output)
        return output


@pytest.mark.parametrize(
    ("prepared", "while_running"),
    [
        pytest.param(subclassed, nullcontext, id="a subclass"),
        pytest.param(with_a_forward_of_its_own, nullcontext, id="a forward of its own"),
        pytest.param(hooked, nullcontext, id="a hook"),
        pytest.param(linear, hooked_globally, id="a global hook"),
        pytest.param(linear, patched, id="a patched class"),
        pytest.param(linear, wrapped, id="a wrapped forward"),
    ],
)
def test_an_output_that_is_overwritten_behind_the_function_shows_new_numbers(
    debugger: PrecisionDebugger, prepared: Callable[..., nn.Linear], while_running: Callable[[], Any]
) -> None:
    module = linear() if prepared is linear else prepared(linear())
    name = type(module).__name__
    with while_running():
        dump = dumped(debugger, Around(module), torch.full((1, 2), BEFORE))
    assert maximum(dump, "Functional.linear.0.forward", "output", 0) == BEFORE
    assert maximum(dump, f"Module.inner.{name}.forward.0", "output", 0) in (BEFORE, AFTER)
    assert maximum(dump, "Module.Around.forward.0", "output", 0) == AFTER
    if prepared is not hooked and while_running is not hooked_globally:
        assert maximum(dump, f"Module.inner.{name}.forward.0", "output", 0) == AFTER


def test_a_mode_that_writes_behind_functions_shows(debugger: PrecisionDebugger) -> None:
    with WritesBehindFunctions():
        dump = dumped(debugger, Around(linear()), torch.full((1, 2), BEFORE))
    assert maximum(dump, "Module.inner.Linear.forward.0", "output", 0) == AFTER


def test_an_input_that_a_hook_overwrites_shows_new_numbers(debugger: PrecisionDebugger) -> None:
    module = linear()
    model = Around(module)
    with torch.no_grad():
        debugger.start(model)
        module.register_forward_pre_hook(lambda module, args: overwrite(args[0]))
        model(torch.full((1, 2), BEFORE))
        debugger.stop()
    dump = read_dump(only_rank(debugger.config.folder() / "step0"))
    assert maximum(dump, "Module.inner.Linear.forward.0", "input_args", 0) == BEFORE
    assert maximum(dump, "Functional.linear.0.forward", "input_args", 0) == AFTER


@pytest.mark.parametrize(
    ("place", "name", "module"),
    [(functional, "linear", linear()), (functional, "silu", nn.SiLU()), (torch, "layer_norm", nn.LayerNorm(2))],
)
def test_a_function_in_whose_place_is_the_users_may_overwrite_what_it_is_given(
    debugger: PrecisionDebugger, monkeypatch: pytest.MonkeyPatch, place: Any, name: str, module: nn.Module
) -> None:
    def replaced(x: Tensor, *rest: Any, **named: Any) -> Tensor:
        overwrite(x)
        result: Tensor = original(x, *rest, **named)
        return result

    original = getattr(place, name)
    monkeypatch.setattr(place, name, replaced)
    dump = dumped(debugger, Around(module), torch.full((1, 2), BEFORE))
    assert maximum(dump, f"Module.inner.{type(module).__name__}.forward.0", "input_args", 0) == BEFORE
    if place is functional:
        assert maximum(dump, f"Functional.{name}.0.forward", "input_args", 0) == AFTER


def test_a_weight_that_is_overwritten_while_it_is_saved_for_the_backward(debugger: PrecisionDebugger) -> None:
    module = linear()

    def pack(tensor: Tensor) -> Tensor:
        overwrite(module.weight)
        return tensor

    debugger.start(Around(module))
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        module(torch.full((1, 2), BEFORE, requires_grad=True))
    debugger.stop()
    dump = read_dump(only_rank(debugger.config.folder() / "step0"))
    assert maximum(dump, "Module.inner.Linear.forward.0", "parameters", "weight") == AFTER


class Twice(nn.Module):
    """Runs one module on one tensor, which is overwritten in between, as are the weights."""

    def __init__(self, write: Callable[[Tensor], object]) -> None:
        super().__init__()
        self.inner = linear()
        self._write = write

    def forward(self, x: Tensor) -> Tensor:
        self.inner(x)
        self._write(x)
        self._write(self.inner.weight)
        result: Tensor = self.inner(x)
        return result


@pytest.mark.parametrize(
    "write", [overwrite, lambda tensor: tensor.fill_(AFTER), lambda tensor: tensor.data.fill_(AFTER)],
    ids=["behind torch's back", "in place", "through .data"],
)  # fmt: skip
def test_between_two_calls_inputs_and_weights_may_change(
    debugger: PrecisionDebugger, write: Callable[[Tensor], object]
) -> None:
    dump = dumped(debugger, Twice(write), torch.full((1, 2), BEFORE))
    for call, expected in ((0, BEFORE), (1, AFTER)):
        entry, function = f"Module.inner.Linear.forward.{call}", f"Functional.linear.{call}.forward"
        assert maximum(dump, entry, "input_args", 0) == expected
        assert maximum(dump, function, "input_args", 0) == expected
        assert maximum(dump, function, "input_args", 1) == expected
        assert maximum(dump, entry, "parameters", "weight") == expected


def test_a_call_that_was_broken_off_leaves_nothing_known(
    debugger: PrecisionDebugger, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, module = torch.full((1, 2), BEFORE), linear()
    model = Around(module)
    with torch.no_grad():
        debugger.start(model)
        with monkeypatch.context() as patched:
            patched.setattr(functional, "linear", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                model(x)
        overwrite(x)
        functional.linear(x, module.weight)
        debugger.stop()
    dump = read_dump(only_rank(debugger.config.folder() / "step0"))
    assert maximum(dump, "Module.inner.Linear.forward.0", "input_args", 0) == BEFORE
    assert maximum(dump, "Functional.linear.0.forward", "input_args", 0) == AFTER


@pytest.mark.parametrize("module", sorted(SINGLE_CALLS, key=str))
def test_the_modules_are_made_of_one_call_and_store_nothing(module: type[nn.Module]) -> None:
    steps = [step.opname for step in dis.get_instructions(module.forward)]
    assert sum(name.startswith("CALL") for name in steps) == 1
    assert not any(name.startswith(("STORE", "DELETE", "POP_JUMP", "JUMP", "FOR_ITER")) for name in steps)
