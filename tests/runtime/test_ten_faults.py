"""msProbe's faults that we have reproduced (26.2.0), by their numbers, and what is right instead."""

import json
import zlib
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn, relu
from torch.nn import functional

from probe_patch.runtime import batch
from probe_patch.runtime.ascii_text import AsciiText
from probe_patch.runtime.debugger import PrecisionDebugger
from probe_patch.runtime.record_text import add_record
from tests.interpreted import Replace
from tests.runtime.conftest import AskedFor
from tests.runtime.dumps import DumpOnDisk, read_dump
from tests.runtime.toys import Around, Mlp, ones


def run(debugger: PrecisionDebugger, model: nn.Module, *inputs: Tensor, backward: bool = False) -> DumpOnDisk:
    debugger.start(model)
    output = model(*inputs)
    if backward:
        output.sum().backward()
    debugger.stop()
    return read_dump(debugger.config.folder() / "step0/rank0")


def echoed(debugger: PrecisionDebugger, x: Tensor) -> dict[str, Any]:
    """The record of one tensor."""
    record: dict[str, Any] = run(debugger, Around(nn.Identity()), x).data["Module.inner.Identity.forward.0"]["output"][
        0
    ]
    return record


def test_1_an_entry_is_encoded_once_however_often_the_dump_is_written(asked_for: AskedFor, replace: Replace) -> None:
    encoded: list[str] = []

    def counted(text: AsciiText, *rest: Any) -> None:
        encoded.append(json.loads(bytes(text.view()).rpartition(b"\n")[2].removesuffix(b": ")))
        add_record(text, *rest)

    replace(batch, "add_record", counted)
    debugger, model = asked_for(), nn.Sequential(*(nn.Identity() for _ in range(300)))
    for _ in range(4):
        dump = run(debugger, model, ones(1))
    assert len(encoded) == len(set(encoded)) == len(dump.data) == 4 * 301


def count_calls(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, calls: list[str]) -> None:
    original = getattr(owner, name)

    def counted(*args: Any, **kwargs: Any) -> Any:
        calls.append(name)
        return original(*args, **kwargs)

    monkeypatch.setattr(owner, name, counted)


def test_2_nothing_waits_for_the_device_until_the_stop(asked_for: AskedFor, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[str] = []
    for name in ("item", "tolist", "cpu", "numpy", "__bool__", "__float__", "__int__"):
        count_calls(monkeypatch, Tensor, name, waits)
    debugger, model = asked_for(level="mix"), Mlp()
    debugger.start(model)
    model(ones(2, 4)).sum().backward()
    assert waits == []
    debugger.stop()
    assert waits.count("cpu") == 1


def test_3_phases_of_one_step_do_not_leak_into_each_other(asked_for: AskedFor, tmp_path: Path) -> None:
    debugger, model = asked_for(level="mix"), Mlp()
    for name in ("ref", "old"):
        debugger.service.config.dump_path = str(tmp_path / name)
        debugger.start(model)
        model(ones(1, 4))
        debugger.stop()
    debugger.step()
    ref, old = (read_dump(tmp_path / f"{name}/step0/rank0").data for name in ("ref", "old"))
    assert ref == old


def test_4_functions_are_recorded_after_one_that_raised(asked_for: AskedFor) -> None:
    debugger = asked_for(level="L1")
    debugger.start()
    with pytest.raises(RuntimeError):
        torch.exp(torch.mm(ones(2, 3), ones(2, 3)))
    torch.exp(ones(2))
    debugger.stop()
    assert "Torch.exp.0.forward" in read_dump(debugger.config.folder() / "step0/rank0").data


def test_5_a_recorded_model_compiles_and_scripts(asked_for: AskedFor) -> None:
    debugger, model = asked_for(level="mix"), Mlp()
    expected = model(ones(2, 4))
    debugger.start(model)
    model(ones(2, 4))
    assert torch.equal(torch.compile(model, backend="eager")(ones(2, 4)), expected)
    debugger.stop()
    torch._dynamo.reset()
    assert torch.equal(torch.compile(model, backend="eager")(ones(2, 4)), expected)
    linear = nn.Linear(4, 4)
    run(debugger, nn.Sequential(linear), ones(2, 4))
    assert torch.equal(torch.jit.script(linear)(ones(2, 4)), linear(ones(2, 4)))
    torch._dynamo.reset()


def test_6_functions_stay_the_objects_they_are_and_early_imports_are_recorded(asked_for: AskedFor) -> None:
    gelu, add = functional.gelu, Tensor.__add__
    debugger = asked_for(level="L1")
    debugger.start()
    assert functional.gelu is gelu
    assert Tensor.__add__ is add
    relu(ones(2))
    debugger.stop()
    assert "Torch.relu.0.forward" in read_dump(debugger.config.folder() / "step0/rank0").data


class InPlaceInside(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.relu = nn.ReLU(inplace=True)
        self.last = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Any:
        return self.last(self.relu(self.first(x)))


def test_7_modules_that_overwrite_their_input_have_their_backward_and_their_parents(asked_for: AskedFor) -> None:
    model = nn.Sequential(InPlaceInside(), InPlaceInside())
    dump = run(asked_for(level="mix"), model, ones(1, 4), backward=True)
    for block in (0, 1):
        inside = [f"Module.{block}.{name}.backward.0" for name in ("first.Linear", "relu.ReLU", "last.Linear")]
        assert set(inside) <= set(dump.data)
        assert {dump.construct[entry] for entry in inside} == {f"Module.{block}.InPlaceInside.backward.0"}


def test_7_a_list_closes_behind_a_module_that_overwrites_its_input(asked_for: AskedFor) -> None:
    model = nn.Sequential(InPlaceInside(), InPlaceInside())
    debugger = asked_for(level="mix", statistics={"list": ["1.relu"]})
    data = run(debugger, model, ones(1, 4), backward=True).data
    functions = "Functional.relu.1.forward", "Functional.relu.1.backward"
    modules = "Module.1.relu.ReLU.forward.0", "Module.1.relu.ReLU.backward.0"
    assert set(data) == {*functions, *modules}


@pytest.mark.parametrize("precision", ["low", "high"])
@pytest.mark.parametrize(
    ("x", "mean", "norm"),
    [
        (torch.tensor([3.0, 4.0], dtype=torch.float64), 3.5, 5.0),
        (torch.tensor([3, 4]), 3.5, 5.0),
        (torch.full((70000,), 100.0, dtype=torch.float16), 100.0, 26457.513110645905),
        (torch.full((70000,), 100.0, dtype=torch.bfloat16), 100.0, 26457.513110645905),
        (torch.tensor([3.0, 4.0]).to(torch.float8_e4m3fn), 3.5, 5.0),
    ],
    ids=["float64", "int64", "float16", "bfloat16", "float8"],
)
def test_8_every_dtype_has_its_numbers_and_they_are_exact(
    asked_for: AskedFor, precision: str, x: Tensor, mean: float, norm: float
) -> None:
    record = echoed(asked_for(precision=precision), x)
    assert (record["Mean"], record["Norm"]) == (pytest.approx(mean, rel=1e-6), pytest.approx(norm, rel=1e-6))


def test_8_saving_an_fp8_tensor_leaves_it_to_its_owner(asked_for: AskedFor) -> None:
    x = torch.tensor([1.0, 2.0, 4.0, 8.0]).to(torch.float8_e4m3fn)
    record = echoed(asked_for(task="tensor"), x)
    assert x.untyped_storage().nbytes() == 4
    assert x.float().tolist() == [1.0, 2.0, 4.0, 8.0]
    assert record["data_name"]


def test_8_the_xor_of_a_scalar_is_a_checksum(asked_for: AskedFor) -> None:
    x = torch.tensor(3.5, dtype=torch.float64)
    record = echoed(asked_for(statistics={"summary_mode": "xor"}), x)
    assert record["md5"] == f"0x{int.from_bytes(x.numpy().tobytes(), 'little'):016x}"


def test_9_a_list_names_the_numbers(asked_for: AskedFor) -> None:
    x = torch.tensor([1.0, float("nan")])
    record = echoed(asked_for(statistics={"summary_mode": ["min", "nan_count", "md5"]}), x)
    numbers = {key: value for key, value in record.items() if key in ("Max", "Mean", "Norm", "NanCount", "md5")}
    assert numbers == {"NanCount": 1, "md5": f"{zlib.crc32(x.numpy().tobytes()):08x}"}


def test_9_a_process_without_a_rank_is_rank_0(asked_for: AskedFor, monkeypatch: pytest.MonkeyPatch) -> None:
    debugger = asked_for(rank=[0])
    monkeypatch.delenv("RANK")
    debugger.start(Around(nn.Identity()))
    debugger.stop()
    assert list((debugger.config.folder() / "step0").glob("proc*/dump.json"))


def test_10_linear_is_among_the_core_functions(asked_for: AskedFor) -> None:
    dump = run(asked_for(level="L1", risk_level="CORE"), nn.Linear(4, 4), ones(1, 4))
    assert "Functional.linear.0.forward" in dump.data


def test_11_every_json_reader_can_read_numbers_that_are_none(asked_for: AskedFor) -> None:
    def refuse(token: str) -> Any:
        raise AssertionError(f"{token} is not JSON")

    debugger = asked_for(strict_json=True)
    record = echoed(debugger, torch.tensor([float("inf"), float("nan")]))
    assert record["Max"] == "NaN"
    json.loads((debugger.config.folder() / "step0/rank0/dump.json").read_text(), parse_constant=refuse)


def test_12_a_model_that_was_recorded_before_is_not_recorded_with_the_next(asked_for: AskedFor) -> None:
    debugger, models = asked_for(), [Around(nn.Identity()), Around(nn.Identity())]
    run(debugger, models[0], ones(1, 2))
    debugger.start(models[1])
    models[0](ones(1, 5))
    models[1](ones(1, 3))
    debugger.stop()
    data = read_dump(debugger.config.folder() / "step0/rank0").data
    shapes = [record["output"][0]["shape"] for entry, record in data.items() if "Identity" in entry]
    assert shapes == [[1, 2], [1, 3]]
