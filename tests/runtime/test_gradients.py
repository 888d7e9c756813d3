"""What flows back: gradients of outputs, of inputs and of parameters, against autograd's own on unrecorded runs."""

import contextlib
import gc
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from probe_patch.runtime.capture.forms import TensorRecord
from probe_patch.runtime.capture.recomputed import AMBIGUOUS
from probe_patch.runtime.capture.recomputed import FUNCTIONS as RECOMPUTED_FUNCTIONS
from probe_patch.runtime.capture.records import Recorder
from probe_patch.runtime.debugger import PrecisionDebugger
from tests.interpreted import Replace
from tests.runtime.conftest import AskedFor, Configured
from tests.runtime.dumps import DumpOnDisk, read_dump
from tests.runtime.toys import Around, Mlp, Shared, ones

Run = Callable[[Any], object]


@pytest.fixture
def recorded(configured: Configured, tmp_path: Path) -> Callable[..., DumpOnDisk]:
    """Runs something with a model while gradients, by default, are recorded at level L0."""

    def record(model: nn.Module, run: Run, level: str = "L0", data_mode: str = "backward") -> DumpOnDisk:
        debugger = configured(level, data_mode)
        debugger.start(model)
        run(model)
        debugger.stop()
        dump = read_dump(tmp_path / "dump/step0/rank0")
        assert dump.meta["problems"] == []
        return dump

    return record


Recorded = Callable[..., DumpOnDisk]


def of(record: dict[str, Any] | None) -> object:
    """The numbers of a recorded tensor, to be compared with ``numbers``. A mean is as precise as what it is of."""
    if record is None:
        return None
    return record["shape"], pytest.approx([record[key] for key in ("Max", "Min", "Mean", "Norm")], rel=1e-5, abs=1e-6)


def numbers(tensor: Tensor) -> object:
    values = tensor.detach().double()
    return list(tensor.shape), [value.item() for value in (values.max(), values.min(), values.mean(), values.norm())]


def grad(of_what: Tensor, *with_respect_to: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(of_what, with_respect_to, retain_graph=True))


def varied(*shape: int) -> Tensor:
    """Different everywhere, so that a wrong tensor has wrong numbers."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3)).requires_grad_()


class Branches(nn.Module):
    """One input into two modules and around both of them."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Any:
        return x + self.left(x).sin() + self.right(x).square()


def test_a_module_passes_its_own_share_on_and_not_what_others_do(recorded: Recorded) -> None:
    model, x = Branches(), varied(3, 4)
    dump = recorded(model, lambda model: model(x).sum().backward())
    left, right = model.left(x), model.right(x)
    from_left, from_right = grad(left.sin().sum(), left)[0], grad(right.square().sum(), right)[0]
    for name, output, arrived in (("left", left, from_left), ("right", right, from_right)):
        entry = dump.data[f"Module.{name}.Linear.backward.0"]
        (passed_on,) = torch.autograd.grad(output, x, arrived, retain_graph=True)
        assert ([of(part) for part in entry["input"]], [of(part) for part in entry["output"]]) == (
            [numbers(arrived)],
            [numbers(passed_on)],
        )


def test_what_a_first_pass_does_not_reach_is_taken_of_a_later_one(recorded: Recorded) -> None:
    bias, x, weight = varied(2), varied(3, 4), varied(4, 2)

    def run(_: object) -> None:
        total = torch.addmm(bias, x, weight).square().sum()
        torch.autograd.grad(total, bias, retain_graph=True)
        total.backward()  # type: ignore[no-untyped-call]

    (entry,) = [entry for name, entry in recorded(Mlp(), run, "L1").data.items() if "addmm" in name]
    expected = grad(torch.addmm(bias, x, weight).square().sum(), bias, x, weight)
    assert [of(part) for part in entry["output"]] == [numbers(gradient) for gradient in expected]


def test_what_one_node_has_given_has_a_share_each(recorded: Recorded) -> None:
    given = varied(3, 4, 4)

    def product(bias: Tensor, x: Tensor, y: Tensor) -> Any:
        return torch.addmm(bias, x, y).square().sum()

    dump = recorded(Mlp(), lambda _: product(*(given * 2).unbind(0)).backward(), "L1")
    (entry,) = [entry for name, entry in dump.data.items() if "addmm" in name]
    parts = [part.detach().requires_grad_() for part in (given * 2).unbind(0)]
    assert [of(part) for part in entry["output"]] == [numbers(one) for one in grad(product(*parts), *parts)]


def test_a_tensor_that_is_several_inputs_has_one_share_at_each(recorded: Recorded) -> None:
    x = varied(4, 4)
    run: Run = lambda _: torch.addmm(x, x, x).square().sum().backward()  # type: ignore[no-untyped-call]  # noqa: E731
    (entry,) = [entry for name, entry in recorded(Mlp(), run, "L1").data.items() if "addmm" in name]
    expected = grad(torch.addmm(x, x, x).square().sum(), x)
    assert [of(part) for part in entry["output"]] == [numbers(gradient) for gradient in expected * 3]


class Residual(nn.Module):
    """``x`` is used three times inside: as it is, through ``inner``, and squared."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Any:
        return x + self.inner(x) + x * x


def test_the_share_of_a_module_with_a_residual_connection_is_the_sum_of_its_parts(recorded: Recorded) -> None:
    model, x = Around(Residual()), varied(3, 4)
    dump = recorded(model, lambda model: (model(x).square().sum() + x.sum()).backward())
    y = model(x)
    entry = dump.data["Module.inner.Residual.backward.0"]
    assert [of(part) for part in entry["input"]] == [numbers(2 * y)]
    assert [of(part) for part in entry["output"]] == [numbers(grad(y.square().sum(), x)[0])]


def test_parameters_gradients_are_their_own_entries(recorded: Recorded) -> None:
    model, x = Mlp(), varied(3, 4)
    dump = recorded(model, lambda model: model(x).square().sum().backward())
    for module in ("body.up.Linear", "body.down.Linear", "norm.LayerNorm"):
        entry = dump.data[f"Module.{module}.parameters_grad.0"]
        own = model.get_submodule(module.rpartition(".")[0])
        assert {name: of(part) for name, (part,) in entry.items()} == {
            name: numbers(parameter.grad) for name, parameter in own.named_parameters() if parameter.grad is not None
        }
        assert set(entry) == {"weight", "bias"}


def test_parents_are_the_backwards_of_the_enclosing_modules(recorded: Recorded) -> None:
    dump = recorded(Mlp(), lambda model: model(varied(3, 4)).sum().backward())
    assert dump.construct == {
        "Module.Mlp.backward.0": None,
        "Module.norm.LayerNorm.backward.0": "Module.Mlp.backward.0",
        "Module.body.Sequential.backward.0": "Module.Mlp.backward.0",
        "Module.body.down.Linear.backward.0": "Module.body.Sequential.backward.0",
        "Module.body.up.Linear.backward.0": "Module.body.Sequential.backward.0",
    }
    assert set(dump.construct) | {
        f"Module.{name}.parameters_grad.0" for name in ("norm.LayerNorm", "body.up.Linear", "body.down.Linear")
    } == set(dump.data)


class Cutting(Around):
    """Hands back nothing that has a gradient, though what it runs has one."""

    def forward(self, x: Tensor, kept: list[Tensor]) -> Any:
        kept.append(self.inner(x))
        return x.detach()


def test_a_module_through_which_nothing_flows_back_is_no_parent(recorded: Recorded) -> None:
    def run(model: Any) -> None:
        kept: list[Any] = []
        model(varied(2, 4), kept)
        kept[0].sum().backward()

    dump = recorded(Around(Cutting(nn.Linear(4, 4))), run)
    assert dump.construct == {"Module.inner.inner.Linear.backward.0": None}


class Splitting(nn.Module):
    """Three outputs: a tensor, a nested one, and one that nobody uses."""

    def forward(self, x: Tensor, scale: float, y: Tensor) -> Any:
        return (x * y).sin(), {"nested": [x.cos() * scale]}, y.exp()


def test_outputs_and_inputs_that_are_tensors_stand_in_their_order(recorded: Recorded) -> None:
    x, y = varied(3, 4), varied(3)[:, None].detach().requires_grad_()

    def loss(outputs: Any) -> Any:
        return outputs[0].square().sum() + 3 * outputs[1]["nested"][0].sum()

    dump = recorded(Around(Splitting()), lambda model: loss(model(x, 2.0, y)).backward())
    outputs = Splitting()(x, 2.0, y)
    entry = dump.data["Module.inner.Splitting.backward.0"]
    first, nested = grad(loss(outputs), outputs[0], outputs[1]["nested"][0])
    assert [of(part) for part in entry["input"]] == [numbers(first), numbers(nested), None]
    assert [of(part) for part in entry["output"]] == [numbers(part) for part in grad(loss(outputs), x, y)]


def test_a_module_used_twice_has_a_backward_per_call_and_one_of_its_parameters(recorded: Recorded) -> None:
    model, x = Shared(), varied(2, 4)
    dump = recorded(model, lambda model: model(x).square().sum().backward())
    first = model.first(x)
    second = model.second(first)
    loss = model.tied(second).square().sum()
    calls = {name: dump.data[f"Module.{name}"] for name in ("first.Linear.backward.0", "first.Linear.backward.1")}
    by_hand = grad(loss, first, second, x)
    assert [of(part["input"][0]) for part in calls.values()] == [numbers(by_hand[0]), numbers(by_hand[1])]
    assert [of(part["output"][0]) for part in calls.values()] == [numbers(by_hand[2]), numbers(by_hand[0])]
    tied = [dump.data[f"Module.{name}.Linear.parameters_grad.0"]["weight"][0] for name in ("first", "tied")]
    assert [of(part) for part in tied] == [numbers(grad(loss, model.first.weight)[0])] * 2
    assert [entry for entry in dump.data if "parameters_grad.1" in entry] == []


def test_in_place_modules_have_the_gradients_of_their_copying_twins(recorded: Recorded) -> None:
    torch.manual_seed(5)
    model = Around(nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 4), nn.ReLU(inplace=True)))
    x = varied(5, 4)
    dump = recorded(model, lambda model: model(x).square().sum().backward())
    layers = list(model.inner.children())
    values = [x]
    for layer in layers:
        values.append(layer(values[-1]) if isinstance(layer, nn.Linear) else values[-1].relu())
    expected = [numbers(part) for part in grad(values[-1].square().sum(), *values)]
    for index, layer in enumerate(layers):
        name = f"Module.inner.{index}.{type(layer).__name__}.backward.0"
        assert (of(dump.data[name]["input"][0]), of(dump.data[name]["output"][0])) == (
            expected[index + 1],
            expected[index],
        )
        assert dump.construct[name] == "Module.inner.Sequential.backward.0"


class Passing(nn.Module):
    """``drop`` hands its input on as it is."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.drop = nn.Linear(4, 4), nn.Dropout(0.0)

    def forward(self, x: Tensor) -> Any:
        return self.drop(self.linear(x)).square()


def test_what_is_handed_on_has_the_arriving_gradient_on_both_sides(recorded: Recorded) -> None:
    model, x = Passing(), varied(3, 4)
    dump = recorded(model, lambda model: model(x).sum().backward())
    assert model.drop(x) is x
    expected = numbers(2 * model.linear(x))
    entry = dump.data["Module.drop.Dropout.backward.0"]
    assert [of(part) for part in (*entry["input"], *entry["output"])] == [expected, expected]
    assert of(dump.data["Module.linear.Linear.backward.0"]["input"][0]) == expected


class Older(nn.Module):
    """Gives back a tensor from before the call, which was made of its input, or works on with it."""

    works_on = False

    def forward(self, x: Tensor, *, older: Tensor) -> Any:
        return older * 2 if self.works_on else older, x.sin()


@pytest.mark.parametrize("works_on", [False, True])
def test_what_was_made_before_the_call_passes_nothing_on_for_it(recorded: Recorded, works_on: bool) -> None:
    x, model = varied(3), Older()
    model.works_on = works_on

    def run(model: Any) -> None:
        older, sine = model(x, older=x.exp())
        (older.sum() + sine.sum()).backward()

    entry = recorded(Around(model), run).data["Module.inner.Older.backward.0"]
    assert [of(part) for part in entry["output"]] == [numbers(x.cos())]


class HandingOn(nn.Module):
    """Uses its input, and hands it on as well."""

    def forward(self, x: Tensor) -> Any:
        return x, x.sin()


def test_what_is_handed_on_and_used_has_the_whole_gradient_of_the_tensor(recorded: Recorded) -> None:
    x = varied(3)

    def loss(model: Any, x: Tensor) -> Any:
        same, sine = model(x)
        return same.exp().sum() + sine.sum() + x.square().sum()

    dump = recorded(Around(HandingOn()), lambda model: loss(model, x).backward())
    entry = dump.data["Module.inner.HandingOn.backward.0"]
    whole = numbers(grad(loss(HandingOn(), x), x)[0])
    assert [of(part) for part in entry["input"]] == [whole, numbers(ones(3))]
    assert [of(part) for part in entry["output"]] == [whole]


def test_what_is_handed_on_without_gradients_has_no_backward(recorded: Recorded) -> None:
    def run(model: Any) -> None:
        x = varied(3)
        with torch.no_grad():
            same = model(x)
        assert same is x
        x.sum().backward()

    assert list(recorded(Around(nn.Dropout(0.0)), run, "L0", "all").data) == [
        "Module.inner.Dropout.forward.0",
        "Module.Around.forward.0",
    ]


def test_indices_have_no_gradient(recorded: Recorded) -> None:
    dump = recorded(Around(nn.Embedding(5, 3)), lambda model: model(torch.tensor([1, 4, 1])).square().sum().backward())
    entry = dump.data["Module.inner.Embedding.backward.0"]
    assert (entry["input"][0]["shape"], entry["output"]) == ([3, 3], [])
    assert dump.data["Module.inner.Embedding.parameters_grad.0"]["weight"][0]["shape"] == [5, 3]


def test_micro_batches_are_told_apart(recorded: Recorded) -> None:
    model, batches = Around(nn.Linear(4, 1)), [varied(2, 4), 3 * varied(2, 4).detach()]

    def run(model: Any) -> None:
        losses = [model(batch).sum() for batch in batches]
        for loss in losses:
            loss.backward()

    data = recorded(model, run).data
    weights = [data[f"Module.inner.Linear.parameters_grad.{number}"]["weight"][0] for number in range(2)]
    assert [of(weight) for weight in weights] == [numbers(batch.sum(0, keepdim=True)) for batch in batches]
    assert [len(data[f"Module.inner.Linear.backward.{number}"]["output"]) for number in range(2)] == [1, 0]
    assert len(data) == 6


def test_firings_go_on_counting_in_a_second_recording_of_the_step(debugger: PrecisionDebugger, tmp_path: Path) -> None:
    model = Around(nn.Linear(4, 1))
    for _ in range(2):
        debugger.start(model)
        model(ones(1, 4)).sum().backward()
        debugger.stop()
    data = read_dump(tmp_path / "dump/step0/rank0").data
    assert [entry for entry in data if "parameters_grad" in entry] == [
        f"Module.inner.Linear.parameters_grad.{number}" for number in range(2)
    ]
    assert len(data) == read_dump(tmp_path / "dump/step0/rank0").meta["entries"] == 10


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_forwards_without_gradients_have_no_backward(
    recorded: Recorded, level: str, context: Callable[[], Any]
) -> None:
    def run(model: Any) -> None:
        with context():
            model(ones(2, 4))

    dump = recorded(Mlp(), run, level, "all")
    assert len(dump.data) == {"L0": 5, "L1": 3, "mix": 8}[level]
    assert [entry for entry in (*dump.data, *dump.construct) if "backward" in entry or "_grad" in entry] == []


@pytest.mark.parametrize(
    ("data_mode", "kinds"),
    [("forward", {"forward"}), ("backward", {"backward", "parameters_grad"})],
)
@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
def test_only_the_directions_asked_for_are_written(
    recorded: Recorded, level: str, data_mode: str, kinds: set[str]
) -> None:
    dump = recorded(Mlp(), lambda model: model(varied(2, 4)).sum().backward(), level, data_mode)
    found = {part for entry in dump.data for part in entry.split(".") if part in kinds | {"forward", "backward"}}
    assert found == (kinds - {"parameters_grad"} if level == "L1" else kinds)
    assert dump.meta["records"] == [data_mode]
    assert not any("parameters_grad" in entry for entry in dump.construct)


class Checkpointed(nn.Module):
    """``body`` may be recomputed in the backward."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(7)
        self.body = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
        self.head = nn.Linear(4, 4)
        self.use_reentrant: bool | None = None

    def forward(self, x: Tensor) -> Any:
        if self.use_reentrant is None:
            return self.head(self.body(x))
        return self.head(checkpoint(self.body, x, use_reentrant=self.use_reentrant))


@pytest.mark.parametrize("level", ["L0", "mix"])
def test_recomputation_keeps_gradients_and_numbers(configured: Configured, tmp_path: Path, level: str) -> None:
    dumps: list[DumpOnDisk] = []
    debugger = configured(level, "all")
    for use_reentrant in (None, False, True):
        model = Checkpointed()
        model.use_reentrant = use_reentrant
        debugger.start(model)
        for batch in (varied(2, 4), varied(3, 4)):
            model(batch).square().sum().backward()
        debugger.stop()
        dumps.append(read_dump(tmp_path / f"dump/step{len(dumps)}/rank0"))
        debugger.step()
    plain, kept, reentrant = dumps
    assert [dump.meta["problems"] for dump in (plain, kept)] == [[], []]
    assert [one["message"] for one in reentrant.meta["problems"]] == ([RECOMPUTED_FUNCTIONS] if level == "mix" else [])
    forwards = [[entry for entry in dump.data if "forward" in entry] for dump in dumps]
    assert forwards[0] == forwards[1] == forwards[2]
    assert kept.data == plain.data
    assert kept.construct == plain.construct
    # Its forward runs without gradients, and what flows back through the repeated one is the gradient of the call.
    flowed = {entry for entry in plain.data if "backward" in entry or "_grad" in entry}
    inside = {f"Functional.linear.{number}.backward" for number in (0, 1, 3, 4)}
    inside |= {f"Torch.tanh.{number}.backward" for number in (0, 1)}
    assert flowed - reentrant.data.keys() == flowed & inside
    assert bool(flowed & inside) == (level == "mix")
    assert {entry: reentrant.data[entry] for entry in flowed - inside} == {
        entry: plain.data[entry] for entry in flowed - inside
    }
    assert reentrant.construct == {entry: up for entry, up in plain.construct.items() if entry not in inside}
    assert reentrant.micro_batches.items() <= plain.micro_batches.items()


class Twice(nn.Module):
    """Calls one checkpointed module twice."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Any:
        for _ in range(2):
            x = checkpoint(self.body, x, use_reentrant=True)
        return self.head(x)


def test_a_repeated_forward_that_could_be_either_of_two_has_no_gradients(
    configured: Configured, tmp_path: Path
) -> None:
    debugger, model = configured("L0", "backward"), Twice()
    debugger.start(model)
    model(varied(2, 4)).sum().backward()
    debugger.stop()
    dump = read_dump(tmp_path / "dump/step0/rank0")
    assert set(dump.construct) == {f"Module.{name}.backward.0" for name in ("Twice", "head.Linear")}
    (problem,) = dump.meta["problems"]
    assert problem["message"] == AMBIGUOUS.format(name="Module.body.Linear.backward.0")


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_repeated_forwards_are_those_of_the_micro_batch_whose_backward_runs(
    configured: Configured, tmp_path: Path, order: tuple[int, ...]
) -> None:
    dumps: list[DumpOnDisk] = []
    debugger, batches = configured("L0", "backward"), [(number + 1.0) * varied(2, 4) for number in range(3)]
    for use_reentrant in (None, True):
        model = Checkpointed()
        model.use_reentrant = use_reentrant
        debugger.start(model)
        losses = [model(batch.detach().requires_grad_()).square().sum() for batch in batches]
        for number in order:
            losses[number].backward()
        debugger.stop()
        dumps.append(read_dump(tmp_path / f"dump/step{len(dumps)}/rank0"))
        debugger.step()
    plain, reentrant = dumps
    assert reentrant.meta["problems"] == []
    assert reentrant.data == plain.data
    assert (reentrant.construct, reentrant.micro_batches) == (plain.construct, plain.micro_batches)


def test_a_module_that_is_run_without_gradients_on_purpose_has_no_backward(recorded: Recorded) -> None:
    class Teaching(Around):
        def forward(self, x: Tensor) -> Any:
            with torch.no_grad():
                taught = self.inner(x)
            return (checkpoint(self.inner, x, use_reentrant=False) - taught).square()

    model = Teaching(nn.Sequential(nn.Linear(4, 4), nn.Tanh()))
    dump = recorded(model, lambda model: model(varied(2, 4)).sum().backward())
    calls = {entry for entry in dump.data if "Linear.backward" in entry or "Tanh.backward" in entry}
    assert calls == {"Module.inner.0.Linear.backward.1", "Module.inner.1.Tanh.backward.1"}


def test_a_backward_on_another_thread_is_recorded(recorded: Recorded) -> None:
    model, x = Mlp(), varied(3, 4)

    def elsewhere(model: Any) -> None:
        thread = threading.Thread(target=model(x).square().sum().backward)
        thread.start()
        thread.join()

    there = recorded(model, elsewhere).data
    loss = model(x).square().sum()
    assert of(there["Module.body.up.Linear.backward.0"]["output"][0]) == numbers(grad(loss, x)[0])
    assert len(there) == 5 + 3


class FailingBackward(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(context: Any, *_: Tensor) -> Any:
        raise ValueError("planned")


class HalfFails(nn.Module):
    """Of the two ways back to ``x``, one fails, as long as it shall."""

    fails = True

    def forward(self, x: Tensor) -> Any:
        # The later node runs first in the backward.
        early = FailingBackward.apply(x) if self.fails else x.exp()  # type: ignore[no-untyped-call]
        return early + x.sin()


def test_a_backward_that_raises_leaves_no_half_share(recorded: Recorded) -> None:
    model, x = Around(HalfFails()), varied(3)

    def run(model: Any) -> None:
        with pytest.raises(ValueError, match="planned"):
            model(x).sum().backward()
        model.inner.fails = False
        model(x).sum().backward()

    data = recorded(model, run).data
    failed, whole = (data[f"Module.inner.HalfFails.backward.{call}"] for call in range(2))
    assert (of(failed["input"][0]), failed["output"]) == (numbers(ones(3)), [None])
    assert of(whole["output"][0]) == numbers(x.exp() + x.cos())


class Twofold(nn.Module):
    """Two outputs of one input, so that a backward may pass through only one of them."""

    def forward(self, x: Tensor) -> Any:
        return x.sin(), x.exp()


@pytest.mark.parametrize("again", [0, 1])
def test_of_a_graph_that_is_run_through_twice_the_first_pass_is_recorded(recorded: Recorded, again: int) -> None:
    x = varied(3)

    def run(model: Any) -> None:
        outputs = model(x)
        (3 * outputs[0].sum()).backward(retain_graph=True)
        (5 * (outputs[0] + again * outputs[1]).sum()).backward(retain_graph=True)

    dump = recorded(Around(Twofold()), run)
    entry = dump.data["Module.inner.Twofold.backward.0"]
    assert of(entry["input"][0]) == numbers(3 * ones(3))
    assert [of(part) for part in entry["output"]] == [numbers(3 * x.cos())]
    assert list(dump.data) == ["Module.inner.Twofold.backward.0", "Module.Around.backward.0"]


def test_a_pass_that_failed_does_not_add_to_the_next_one(recorded: Recorded) -> None:
    x = varied(3)

    def fail(gradient: Tensor) -> None:
        raise ValueError("planned")

    def run(model: Any) -> None:
        y = x * 1
        outputs = model(y)
        stop = outputs[0].register_hook(fail)
        loss = outputs[0].sum() + outputs[1].sum()
        with pytest.raises(ValueError, match="planned"):
            loss.backward(retain_graph=True)
        stop.remove()
        loss.backward()

    entry = recorded(Around(Twofold()), run).data["Module.inner.Twofold.backward.0"]
    assert [of(part) for part in entry["output"]] == [numbers(x.cos() + x.exp())]


def test_gradients_of_bf16_keep_their_type(recorded: Recorded) -> None:
    model: Any = Around(nn.Linear(4, 4).bfloat16())
    x = varied(2, 4).detach().bfloat16().requires_grad_()
    data = recorded(model, lambda model: model(x).square().sum().backward()).data
    entry, parameters = data["Module.inner.Linear.backward.0"], data["Module.inner.Linear.parameters_grad.0"]
    found = [entry["input"][0], entry["output"][0], parameters["weight"][0]]
    assert [part["dtype"] for part in found] == ["torch.bfloat16"] * 3
    assert x.grad is not None
    assert [of(part) for part in found[1:]] == [numbers(x.grad), numbers(model.inner.weight.grad)]


def test_gradients_of_functions_are_inside_their_module(recorded: Recorded) -> None:
    model: Any = Around(nn.Linear(4, 4))
    x: Any = varied(2, 4)
    dump = recorded(model, lambda model: torch.autograd.backward(functional.gelu(model(x)).sum()), "mix")
    linear, gelu = dump.data["Functional.linear.0.backward"], dump.data["Functional.gelu.0.backward"]
    assert dump.construct["Functional.linear.0.backward"] == "Module.inner.Linear.backward.0"
    assert dump.construct["Functional.gelu.0.backward"] is dump.construct["Module.Around.backward.0"] is None
    module = dump.data["Module.inner.Linear.backward.0"]
    assert linear["input"] == module["input"] == gelu["output"]
    y = model(x)
    loss = functional.gelu(y).sum()
    by_hand = [numbers(part) for part in grad(loss, x, model.inner.weight, model.inner.bias)]
    assert [of(part) for part in linear["output"]] == by_hand
    assert module["output"] == linear["output"][:1]


def test_one_gradient_is_looked_at_once_for_all_calls_that_it_is_recorded_in(
    recorded: Recorded, replace: Replace
) -> None:
    looked_at: list[list[int]] = []

    def counting(recorder: Recorder, tensor: Tensor, place: str) -> TensorRecord:
        looked_at.append(list(tensor.shape))
        return original(recorder, tensor, place)  # type: ignore[no-any-return]

    original: Any = getattr(Recorder, "_looked_at", None)
    replace(Recorder, "_looked_at", counting)
    model: Any = Around(nn.Linear(4, 5))
    gradient = varied(2, 5).detach()
    dump = recorded(model, lambda model: torch.autograd.backward(model(varied(2, 4)), gradient), "mix")
    of_function = dump.data["Functional.linear.0.backward"]
    for name in ("Module.inner.Linear.backward.0", "Module.Around.backward.0"):
        assert dump.data[name] == {"input": of_function["input"], "output": of_function["output"][:1]}
    # A parameter's gradient is passed on by the function, and arrives later.
    assert sorted(looked_at) == sorted([[2, 5], [2, 4], *2 * [[5, 4], [5]]])
    assert dump.meta["tensors"] == 3 + 3 + 2 * 2


class Between(nn.Module):
    """Does something to the output of a function before it hands it out."""

    def __init__(self, act: Callable[[Tensor], object]) -> None:
        super().__init__()
        self.act = act

    def forward(self, x: Tensor) -> Any:
        y = functional.gelu(x)
        self.act(y)
        return y


def double_what_arrives(y: Tensor) -> None:
    y.register_hook(lambda gradient: 2 * gradient)  # type: ignore[no-untyped-call]


def double_what_is_passed_on(y: Any) -> None:
    y.grad_fn.register_hook(lambda passed_on, arrived: (2 * passed_on[0],))


def double_in_place(y: Tensor) -> None:
    y.mul_(2)


def run_through_already(y: Tensor) -> None:
    torch.autograd.backward(2 * y.sum(), retain_graph=True)


@pytest.mark.parametrize(
    ("act", "of_function", "of_module"),
    [
        (double_what_arrives, (1, 2), (2, 2)),
        (double_what_is_passed_on, (1, 1), (1, 2)),
        (double_in_place, (2, 2), (1, 2)),
        (run_through_already, (2, 2), (1, 1)),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_the_run_does_between_two_calls_shows_in_their_gradients(
    recorded: Recorded, act: Callable[[Tensor], object], of_function: tuple[int, int], of_module: tuple[int, int]
) -> None:
    """As multiples of the gradients without it: of what arrived, and of what is passed on."""
    x = varied(3, 4)
    weights = torch.arange(12.0).view(3, 4)
    dump = recorded(Around(Between(act)), lambda model: (model(x) * weights).sum().backward(), "mix")
    y = functional.gelu(x)
    plain = weights if act is not run_through_already else torch.ones(3, 4)
    for name, times, arrived in (
        ("Functional.gelu.0.backward", of_function, plain),
        ("Module.inner.Between.backward.0", of_module, weights),
    ):
        (passed_on,) = torch.autograd.grad(y, x, arrived, retain_graph=True)
        entry = dump.data[name]
        found = [of(entry["input"][0]), of(entry["output"][0])]
        assert found == [numbers(times[0] * arrived), numbers(times[1] * passed_on)]


def test_each_call_has_files_of_its_own_for_a_gradient_of_several(asked_for: AskedFor, tmp_path: Path) -> None:
    debugger, model, x = asked_for(level="mix", task="tensor"), Around(nn.Linear(4, 5)), varied(2, 4)
    debugger.start(model)
    model(x).square().sum().backward()
    debugger.stop()
    folder = tmp_path / "dump/step0/rank0"
    entries = ("Functional.linear.0.backward", "Module.inner.Linear.backward.0", "Module.Around.backward.0")
    names = [read_dump(folder).data[entry][side][0]["data_name"] for side in ("input", "output") for entry in entries]
    assert names == [f"{entry}.{side}.0.pt" for side in ("input", "output") for entry in entries]
    expected = [*3 * [2 * model(x)], *3 * [x.grad]]
    assert all(
        torch.equal(torch.load(folder / "dump_tensor_data" / n), t) for n, t in zip(names, expected, strict=True)
    )


def test_a_statistic_that_fails_in_a_backward_is_a_problem_and_not_an_exception(
    debugger: PrecisionDebugger, tmp_path: Path, replace: Replace
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("broken on purpose")

    model, x = Mlp(), varied(2, 4)
    debugger.start(model)
    loss = model(x).sum()
    replace(Recorder, "_guarded", broken)
    loss.backward()
    debugger.stop()
    assert x.grad is not None
    problems = {
        problem["kind"]: problem["count"] for problem in read_dump(tmp_path / "dump/step0/rank0").meta["problems"]
    }
    assert problems == {"recording a gradient": 16}


def test_hooks_that_are_called_after_the_stop_record_nothing(debugger: PrecisionDebugger, tmp_path: Path) -> None:
    model, x = Mlp(), varied(2, 4)
    debugger.start(model)
    output = model(x)
    hooked: list[Any] = [*model.parameters(), output]
    hooks = [hook for tensor in hooked for hook in tensor._backward_hooks.values()]
    dump = debugger.service._dumps[debugger.config.folder()]
    debugger.stop()
    for hook in hooks:
        hook(ones(2, 4))
    output.sum().backward()
    dump.store.flush()
    assert len(hooks) == 6 + 1
    assert dump.store.entries == 5


def test_no_activation_outlives_its_use_though_it_was_never_run_through(debugger: PrecisionDebugger) -> None:
    class Keeping(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, x: Tensor) -> Tensor:
            context.kept = x.clone()
            kept.append(weakref.ref(context.kept))
            return x.clone()

        @staticmethod
        def backward(context: Any, *gradients: Tensor) -> Any:
            return gradients[0] * context.kept

    class Inside(nn.Module):
        def forward(self, x: Tensor) -> Any:
            return Keeping.apply(x)  # type: ignore[no-untyped-call]

    kept: list[weakref.ref[Tensor]] = []
    model = nn.Sequential(Inside(), Inside())
    debugger.start(model)
    model(varied(3))
    model(varied(3)).sum().backward()
    gc.collect()
    assert [gone() for gone in kept] == [None] * 4
    debugger.stop()


class Raising(nn.Module):
    def forward(self, x: Tensor) -> Any:
        functional.linear(x, x[:, :3])


@pytest.mark.parametrize("inner", [nn.Linear(4, 4), Raising()], ids=["returns", "raises"])
@pytest.mark.parametrize("is_leaf", [True, False])
def test_no_input_outlives_its_call(configured: Configured, inner: nn.Module, is_leaf: bool) -> None:
    debugger, model = configured("mix", "backward"), Around(inner)
    x = varied(2, 4)
    if not is_leaf:
        # Its node keeps the result.
        x = x.exp()
    gone = weakref.ref(x)
    debugger.start(model)
    with contextlib.suppress(RuntimeError):
        model(x)
    del x
    gc.collect()
    assert gone() is None
    debugger.stop()
