"""Functions that the user has registered."""

import operator
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from probe_patch.runtime.capture.functions.custom import CustomApis
from tests.runtime.functions.recording import Recording, recorded
from tests.runtime.toys import Around, Cube, ones

X = ones(2)


def scaled(x: Tensor, by: float = 2.0) -> Tensor:
    return torch.mul(x, by)


class Kernels:
    @staticmethod
    def fused(x: Tensor) -> Tensor:
        return x.exp()

    def method(self, x: Tensor) -> Tensor:
        return x.sin()


@pytest.fixture
def library() -> Any:
    """Stands for a package of kernels, with a function in Python and one in C."""
    module: Any = ModuleType("kernels.ops")
    module.scaled = scaled
    module.add = operator.add
    return module


@pytest.fixture(autouse=True)
def everything_is_put_back(library: Any) -> Iterator[None]:
    def state() -> Any:
        owners = [library, Cube, Kernels]
        return [dict(vars(owner)) for owner in owners], scaled.__code__, Kernels.fused.__code__

    before = state()
    yield
    assert state() == before


def test_a_python_function_is_recorded_wherever_it_was_imported_to(library: Any) -> None:
    apis = CustomApis()
    assert apis.add(library, "scaled") is None
    dump = recorded(lambda: scaled(X, by=3.0), custom_apis=apis)
    assert list(dump.data) == ["kernels.ops.scaled.0.forward"]
    entry = dump.data["kernels.ops.scaled.0.forward"]
    assert (len(entry["input_args"]), entry["input_kwargs"]["by"]["value"]) == (1, 3.0)
    assert entry["output"][0]["Max"] == 3.0
    assert library.scaled is scaled


REGISTERED: dict[str, tuple[Callable[[Any], Any], str, str | None, Callable[[Any], Any], str]] = {
    "with a prefix": (lambda m: m, "scaled", "mine", lambda m: m.scaled(X), "mine.scaled"),
    "in C": (lambda m: m, "add", None, lambda m: m.add(X, X), "kernels.ops.add"),
    "an autograd function": (lambda _: Cube, "apply", None, lambda _: Cube.apply(X), "Cube.apply"),  # type: ignore[no-untyped-call]
    "a static method": (lambda _: Kernels, "fused", None, lambda _: Kernels.fused(X), "Kernels.fused"),
    "a method": (lambda _: Kernels, "method", None, lambda _: Kernels().method(X), "Kernels.method"),
}


@pytest.mark.parametrize("example", REGISTERED)
def test_it_is_named_after_its_prefix_and_what_it_calls_is_not_recorded(example: str, library: Any) -> None:
    owner, attribute, prefix, call, name = REGISTERED[example]
    apis = CustomApis()
    expected = call(library)
    assert apis.add(owner(library), attribute, prefix) is None
    results: list[Tensor] = []
    dump = recorded(lambda: results.append(call(library)), custom_apis=apis)
    assert dump.names() == [name]
    assert torch.equal(results[0], expected)
    assert dump.problems == ()


def test_registering_one_autograd_function_registers_no_other() -> None:
    class Other(torch.autograd.Function):
        @staticmethod
        def forward(_: Any, x: Tensor) -> Tensor:
            return x.neg()

    apis = CustomApis()
    apis.add(Cube, "apply")
    names = recorded(lambda: (Cube.apply(X), Other.apply(X)), custom_apis=apis).names()  # type: ignore[no-untyped-call]
    assert names == ["Cube.apply", "Tensor.neg"]


def test_what_flows_back_is_recorded_too() -> None:
    apis = CustomApis()
    apis.add(Cube, "apply")
    x = ones(2).requires_grad_()
    dump = recorded(lambda: Cube.apply(x).sum().backward(), backward=True, custom_apis=apis)  # type: ignore[no-untyped-call]
    assert dump.data["Cube.apply.0.backward"]["output"][0]["Max"] == 3.0
    assert torch.equal(x.grad, 3 * ones(2))  # type: ignore[arg-type]


class Uses(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return scaled(x)


def test_it_belongs_to_the_module_it_is_called_in(library: Any) -> None:
    apis, model = CustomApis(), Around(Uses())
    apis.add(library, "scaled", "mine")
    parents = recorded(lambda: model(X), model=model, custom_apis=apis).parents
    assert parents["mine.scaled.0.forward"] == "Module.inner.Uses.forward.0"


def test_what_was_restored_is_no_longer_recorded(library: Any) -> None:
    apis = CustomApis()
    apis.add(library, "scaled")
    apis.remove(library, "scaled")
    apis.remove(library, "never added")
    assert recorded(lambda: scaled(X), custom_apis=apis).names() == ["Torch.mul"]


def test_registered_twice_it_is_recorded_once(library: Any) -> None:
    apis = CustomApis()
    apis.add(library, "scaled", "first")
    apis.add(library, "scaled", "second")
    assert recorded(lambda: scaled(X), custom_apis=apis).names() == ["second.scaled"]


def test_a_function_that_is_seen_anyway_is_recorded_once() -> None:
    apis = CustomApis()
    apis.add(torch, "exp", "mine")
    assert recorded(lambda: torch.exp(X), custom_apis=apis).names() == ["mine.exp"]


def test_it_may_raise(library: Any) -> None:
    apis = CustomApis()
    apis.add(library, "add")
    apis.add(library, "scaled")

    def work() -> None:
        with pytest.raises(TypeError):
            library.add(X, None)
        with pytest.raises(TypeError):
            scaled(X, by="no number")  # type: ignore[arg-type]
        scaled(X)

    dump = recorded(work, custom_apis=apis)
    assert dump.names() == ["kernels.ops.add", "kernels.ops.scaled", "kernels.ops.scaled"]


def generates() -> Any:
    yield 1


@pytest.mark.parametrize(
    ("owner", "name", "prefix", "part"),
    [
        (SimpleNamespace(), "missing", None, "has no function 'missing'"),
        (SimpleNamespace(number=3), "number", None, "has no function 'number'"),
        (SimpleNamespace(f=scaled), "f", 3, "must be a string"),
        (SimpleNamespace(f=generates), "f", None, "Custom.f is a generator"),
    ],
)
def test_what_cannot_be_recorded_is_refused_with_a_reason(owner: Any, name: str, prefix: Any, part: str) -> None:
    apis = CustomApis()
    reason = apis.add(owner, name, prefix)
    assert reason is not None
    assert part in reason
    assert apis.all() == ()


def test_what_has_been_replaced_meanwhile_is_left_alone(library: Any) -> None:
    apis, recording = CustomApis(), None
    apis.add(library, "add")
    recording = Recording(custom_apis=apis)
    recording.start()
    library.add = theirs = lambda x, _: x
    dump = recording.stop()
    assert library.add is theirs
    assert ["somebody else has replaced add" in problem.message for problem in dump.problems] == [True]
    library.add = operator.add


def test_compiled_it_runs_compiled(library: Any) -> None:
    apis = CustomApis()
    apis.add(library, "scaled")
    torch.compiler.reset()
    compiled = torch.compile(lambda x: scaled(x, by=3.0) + 1, backend="eager", fullgraph=True)
    results: list[Tensor] = []
    dump = recorded(lambda: results.append(compiled(X)), custom_apis=apis)
    results.append(compiled(X))
    assert all(torch.equal(result, 3 * X + 1) for result in results)
    assert "kernels.ops.scaled" not in dump.names()
