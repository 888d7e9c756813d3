"""How functions are recorded, and that the run does not notice."""

import copy
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._device import DeviceContext

from probe_patch.runtime.capture.records import Recorder
from probe_patch.runtime.compiled import SHORTCOMING
from probe_patch.runtime.debugger import PrecisionDebugger
from tests.interpreted import Replace
from tests.runtime.dumps import read_dump
from tests.runtime.functions.recording import Recording, recorded
from tests.runtime.toys import Around, Cube, Echo, ones

X, TWO, THREE = ones(2), ones(2, 2), ones(3, 3)


@pytest.fixture(autouse=True)
def no_mode_is_left() -> Iterator[None]:
    yield
    left = stack()
    for _ in left:
        torch._C._pop_torch_function_stack()
    assert left == []


def test_torch_reaches_it_without_a_frame_of_python_where_it_is_compiled() -> None:
    def ask() -> None:
        (mode,) = stack()
        is_direct = mode.__torch_function__ is mode
        assert is_direct == (SHORTCOMING is None)
        # What torch.compile reads, the class has in any case.
        assert isinstance(type(mode).__torch_function__, FunctionType)

    recorded(ask)


def test_only_the_outermost_call_is_recorded() -> None:
    attention = nn.MultiheadAttention(4, 2)
    x = ones(3, 1, 4)
    names = recorded(lambda: attention(x, x, x)).names()
    assert names.count("Functional.multi_head_attention_forward") == 1
    assert not {"Functional.linear", "Functional.scaled_dot_product_attention", "Torch.bmm"} & set(names)


def test_a_function_has_the_form_of_msprobes() -> None:
    data = recorded(lambda: torch.add(X, X, alpha=2)).data
    entry = data["Torch.add.0.forward"]
    assert list(entry) == ["input_args", "input_kwargs", "output"]
    assert entry["input_kwargs"]["alpha"] == {"type": "int", "value": 2}
    assert (entry["input_args"][0]["Max"], entry["output"][0]["Max"]) == (1.0, 3.0)


class Inside(nn.Module):
    def forward(self, x: Tensor) -> Any:
        return torch.exp(x) + 1


def test_at_mix_a_function_belongs_to_the_innermost_module() -> None:
    model = Around(nn.Sequential(Inside()))
    parents = recorded(lambda: torch.sin(model(X)), model=model).parents
    assert parents["Torch.exp.0.forward"] == parents["Tensor.__add__.0.forward"] == "Module.inner.0.Inside.forward.0"
    assert parents["Module.inner.0.Inside.forward.0"] == "Module.inner.Sequential.forward.0"
    assert parents["Torch.sin.0.forward"] is None


def test_the_hooks_of_modules_are_not_recorded() -> None:
    model = Around(nn.Sequential(Echo(X), Echo((X, {"x": X}))))
    assert [name for name in recorded(lambda: model(X), model=model, backward=True).data if "Module" not in name] == []


def debugger_at(level: str, folder: Path) -> PrecisionDebugger:
    config = folder / "config.json"
    config.write_text(json.dumps({"dump_path": str(folder / "dump"), "level": level, "step": [], "rank": []}))
    return PrecisionDebugger(str(config))


def test_l1_needs_no_model_and_has_no_construct(tmp_path: Path) -> None:
    debugger = debugger_at("L1", tmp_path)
    debugger.start(rank_id=0)
    torch.exp(X)
    debugger.stop()
    dump = read_dump(tmp_path / "dump/step0/rank0")
    assert (list(dump.data), dump.construct, dump.dump["level"]) == (["Torch.exp.0.forward"], {}, "L1")
    assert dump.stack["0"][0] == ["Torch.exp.0.forward"]
    assert "torch.exp(X)" in dump.stack["0"][1][0]


def test_after_a_function_that_raised_the_others_are_still_recorded() -> None:
    def work() -> None:
        with pytest.raises(RuntimeError):
            torch.mm(TWO, THREE)
        with pytest.raises(TypeError):
            F.softmax(X, dim="no")  # type: ignore[arg-type]
        torch.exp(X)

    result = recorded(work)
    assert list(result.data) == ["Torch.mm.0.forward", "Functional.softmax.0.forward", "Torch.exp.0.forward"]
    assert list(result.data["Torch.mm.0.forward"]) == ["input_args", "input_kwargs"]
    assert result.problems == ()


def test_an_in_place_function_has_what_was_there_before_and_after() -> None:
    x = torch.tensor([-2.0, 3.0])

    def work() -> None:
        x.relu_()
        x.view(2, 1)[0].add_(7)

    data = recorded(work).data
    relu, add = data["Tensor.relu_.0.forward"], data["Tensor.add_.0.forward"]
    assert (relu["input_args"][0]["Min"], relu["output"][0]["Min"]) == (-2.0, 0.0)
    assert (add["input_args"][0]["Max"], add["output"][0]["Max"], x[0].item()) == (0.0, 7.0, 7.0)


class Doubles(TorchFunctionMode):
    """A mode of the run: it sees calls and doubles every exp."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(func.__name__)
        result = func(*args, **(kwargs or {}))
        return result * 2 if func is torch.exp else result


def work_on(x: Tensor) -> Tensor:
    return torch.exp(x) + 1 - x.sub(3)


WORK = ["Torch.exp", "Tensor.__add__", "Tensor.sub", "Tensor.__sub__"]


def without_doubling(names: list[str]) -> list[str]:
    return [name for name in names if name != "Tensor.__mul__"]


@pytest.mark.parametrize("around", [lambda: torch.device("cpu"), lambda: DeviceContext("cpu"), Doubles])
@pytest.mark.parametrize("begins", ["before", "after"])
@pytest.mark.parametrize("ends", ["before", "after"])
def test_modes_of_the_run_may_come_and_go_in_any_order(around: Callable[[], Any], begins: str, ends: str) -> None:
    recording, mode = Recording(), around()
    with around() as _:
        plain = work_on(X)
    if begins == "before":
        recording.start()
    mode.__enter__()
    if begins == "after":
        recording.start()
    result = work_on(X)
    if ends == "before":
        dump = recording.stop()
    mode.__exit__(None, None, None)
    assert all(left is not mode for left in stack())
    if ends == "after":
        dump = recording.stop()
    assert without_doubling(dump.names()) == WORK
    assert torch.equal(result, plain)
    assert dump.problems == ()


def stack() -> list[Any]:
    return [torch._C._get_function_stack_at(place) for place in range(torch._C._len_torch_function_stack())]


def test_a_default_device_may_be_set_and_reset_meanwhile() -> None:
    recording = Recording()
    torch.set_default_device("cpu")
    recording.start()
    work_on(X)
    torch.set_default_device("meta")
    assert torch.empty(1).is_meta
    torch.set_default_device(None)
    work_on(X)
    names = recording.stop().names()
    assert [name for name in names if name in WORK] == WORK * 2


def test_a_mode_of_the_run_sees_what_it_saw_without_us() -> None:
    def seen(model: nn.Module) -> list[str]:
        with Doubles() as mode:
            model(X)
        return mode.seen  # type: ignore[no-any-return]

    model = Around(Inside())
    plain = seen(model)
    watched: list[str] = []
    recorded(lambda: watched.extend(seen(model)), model=model)
    assert watched == plain != []


def test_stopped_on_another_thread_it_records_no_more_and_the_next_start_clears_it_away() -> None:
    recording = Recording()
    recording.start()
    stopped: list[Any] = []
    thread = threading.Thread(target=lambda: stopped.append(recording.stop()))
    thread.start()
    thread.join()
    torch.exp(X)
    assert len(stack()) == 1
    assert [problem.kind for problem in stopped[0].problems] == ["stopping"]
    assert stopped[0].data == {}
    assert recorded(lambda: torch.exp(X)).names() == ["Torch.exp"]
    assert stack() == []


def test_compiled_code_runs_compiled_and_its_tracing_is_not_recorded() -> None:
    torch.compiler.reset()
    compiled = torch.compile(Inside(), backend="eager", fullgraph=True)
    expected = Inside()(X)
    results = []
    dump = recorded(lambda: results.append(compiled(X)))
    results.append(compiled(X))
    assert all(torch.equal(result, expected) for result in results)
    # The eager backend runs what it was given call by call; others would leave nothing to see.
    assert dump.names() == ["Torch.exp", "Tensor.add"]
    assert dump.problems == ()


def traced() -> Any:
    return torch.jit.trace(Inside(), (X,), check_trace=False)  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("make", [traced, lambda: torch.jit.script(Inside())])
def test_jit_works_and_its_graph_has_nothing_of_ours(make: Callable[[], Any]) -> None:
    graphs = [str(make().graph)]
    dump = recorded(lambda: graphs.append(str(make().graph)))
    assert graphs[0].count("aten::") == graphs[1].count("aten::") > 0
    assert not {"Torch.exp", "Tensor.__add__"} & set(dump.names())


def as_megatron_does(loss: Tensor) -> None:
    """Straight to the engine, which no mode sees being called."""
    ones_like = torch.ones((), dtype=loss.dtype)
    torch.autograd.Variable._execution_engine.run_backward((loss,), (ones_like,), False, False, (), True, True)


@pytest.mark.parametrize("backward", [Tensor.backward, torch.autograd.backward, as_megatron_does])
def test_what_an_autograd_function_calls_is_recorded_forward_and_not_backward(backward: Callable[..., Any]) -> None:
    x = ones(2).requires_grad_()
    result = recorded(lambda: backward(Cube.apply(x).sum()))  # type: ignore[no-untyped-call]
    assert [name for name in result.names() if name != "Torch.ones"] == ["Tensor.pow", "Tensor.sum"]
    assert torch.equal(x.grad, 3 * ones(2))  # type: ignore[arg-type]


def test_transforms_of_torch_func_compute_what_they_did() -> None:
    def f(v: Tensor) -> Tensor:
        return (v * v.exp()).sum()

    def work() -> list[Tensor]:
        x = torch.arange(3.0)
        return [torch.func.grad(f)(x), torch.func.vmap(f)(x[None]), torch.func.jvp(f, (x,), (x,))[1]]

    results: list[Tensor] = []
    dump = recorded(lambda: results.extend(work()))
    assert all(torch.equal(one, other) for one, other in zip(results, work(), strict=True))
    assert dump.names().count("Tensor.exp") == 3
    (problem,) = dump.problems
    assert "inside a transform of torch.func (vmap, grad and so on) a tensor has no numbers" in problem.message


def test_functions_are_the_same_objects() -> None:
    before = F.gelu, torch.exp, Tensor.add, nn.Linear.forward
    during: list[Any] = []
    recorded(lambda: during.extend([F.gelu, torch.exp, Tensor.add, nn.Linear.forward]))
    assert all(one is other for one, other in zip(before, during, strict=True))


def test_a_failure_of_ours_is_noted_and_the_run_goes_on(replace: Replace, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> Any:
        raise ValueError("planned")

    results = []
    for method in ("arguments", "output"):
        replace(Recorder, method, fails)
        dump = recorded(lambda: results.append(torch.exp(X)))
        monkeypatch.undo()
        assert [(problem.message, problem.count) for problem in dump.problems] == [("ValueError: planned", 1)]
    assert all(torch.equal(result, X.exp()) for result in results)


def test_a_copied_model_is_not_recorded_twice() -> None:
    model = Around(Inside())
    names = recorded(lambda: copy.deepcopy(model)(X), model=model).names()
    assert [name for name in names if name in ("Torch.exp", "Tensor.__add__")] == ["Torch.exp", "Tensor.__add__"]


@pytest.mark.parametrize(
    ("place", "function", "args", "entry"),
    [
        (F, "gelu", (X,), "Functional.gelu.0.forward"),
        (F, "silu", (X,), "Functional.silu.0.forward"),
        (F, "linear", (X, TWO), "Functional.linear.0.forward"),
        (torch, "matmul", (X, TWO), "Torch.matmul.0.forward"),
        (torch, "norm", (X,), "Torch.norm.0.forward"),
    ],
)
def test_a_function_that_somebody_has_wrapped_is_recorded_as_itself(
    monkeypatch: pytest.MonkeyPatch, place: Any, function: str, args: tuple[Tensor, ...], entry: str
) -> None:
    original = getattr(place, function)
    monkeypatch.setattr(place, function, lambda *args, **kwargs: original(*args, **kwargs))
    found = recorded(lambda: getattr(place, function)(*args))
    assert list(found.data) == [entry]
