"""Saved tensors: which, under which names, with what in them, and what happens when there is no room."""

import json
import os
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from probe_patch.runtime import tensor_files
from probe_patch.runtime.tensor_names import TensorNames
from tests.runtime.configs import debugger_with, recorded
from tests.runtime.dumps import DumpOnDisk, only_rank, read_dump
from tests.runtime.toys import Around, Echo, InPlace, Mlp, Packed, Pair, ones

ECHO = "Module.inner.Echo.forward.0"


def saved(tmp_path: Path) -> dict[str, Tensor]:
    """The files of the dump, read."""
    folder = only_rank(tmp_path / "dump" / "step0") / "dump_tensor_data"
    return {path.name: torch.load(path, weights_only=True) for path in sorted(folder.glob("*"))}


def names_in(record: Any) -> list[str]:
    """All ``data_name`` of a record."""
    if isinstance(record, dict):
        own = [record["data_name"]] if "data_name" in record else []
        return own + [name for part in record.values() for name in names_in(part)]
    return [name for part in record for name in names_in(part)] if isinstance(record, list) else []


def tensor_dump(tmp_path: Path, *args: Any, **kwargs: Any) -> DumpOnDisk:
    return recorded(tmp_path, Around(Echo()), *args, keys={"task": "tensor", "tensor": {"list": ["inner"]}}, **kwargs)


def test_every_tensor_of_a_module_is_a_file_named_after_its_place(tmp_path: Path) -> None:
    debugger = debugger_with(tmp_path, task="tensor", tensor={"list": ["norm"]})
    model, x = Mlp(), torch.randn(2, 4)
    debugger.start(model)
    output = model(x)
    gradient = torch.randn(2, 4)
    output.backward(gradient)
    debugger.stop()
    files = saved(tmp_path)
    assert sorted(files) == [
        "Module.norm.LayerNorm.backward.0.input.0.pt",
        "Module.norm.LayerNorm.backward.0.output.0.pt",
        "Module.norm.LayerNorm.forward.0.input.0.pt",
        "Module.norm.LayerNorm.forward.0.output.0.pt",
        "Module.norm.LayerNorm.forward.0.parameters.bias.pt",
        "Module.norm.LayerNorm.forward.0.parameters.weight.pt",
        "Module.norm.LayerNorm.parameters_grad.0.bias.pt",
        "Module.norm.LayerNorm.parameters_grad.0.weight.pt",
    ]
    assert torch.equal(files["Module.norm.LayerNorm.forward.0.output.0.pt"], output)
    assert torch.equal(files["Module.norm.LayerNorm.backward.0.input.0.pt"], gradient)
    assert torch.equal(files["Module.norm.LayerNorm.parameters_grad.0.bias.pt"], gradient.sum(0))
    dump = read_dump(only_rank(tmp_path / "dump" / "step0"))
    assert sorted(names_in(dump.data)) == sorted(files)
    folder = only_rank(tmp_path / "dump" / "step0") / "dump_tensor_data"
    assert (dump.dump["task"], dump.dump["dump_data_dir"]) == ("tensor", str(folder))
    assert Path(dump.dump["dump_data_dir"]).is_absolute()


@pytest.mark.parametrize(
    ("value", "paths"),
    [
        (ones(1), [""]),
        ([ones(1), (ones(1), 3)], [".0", ".1.0"]),
        ({"a": {"b": ones(1)}}, [".a.b"]),
        (Pair(1, ones(1)), [".right"]),
        (Packed(ones(1), "x"), [".lengths"]),
        ({0: ones(1)}, [".0"]),
        (np.ones(3), [""]),
        (ones(0), []),
        (torch.ones(1, device="meta"), []),
        (torch.eye(2).to_sparse(), []),
        (np.array(["text"]), []),
        (np.ma.masked_array([1.0], mask=[True]), []),
        (np.ones(1, dtype=np.longdouble), []),
        (3, []),
    ],
)
def test_paths_lead_to_the_tensor(tmp_path: Path, value: object, paths: list[str]) -> None:
    dump = tensor_dump(tmp_path, value, x=value)
    wanted = [f"{ECHO}.{side}{path}.pt" for side in ("input.0", "kwargs.x") for path in paths]
    assert names_in(dump.data[ECHO]) == wanted
    assert sorted(saved(tmp_path)) == sorted(wanted)
    assert dump.meta["problems"] == []


@pytest.mark.parametrize(
    "tensor",
    [
        torch.randn(3, 4).t(),
        torch.randn(100)[7:9],
        torch.randn(2, 1).expand(2, 5),
        torch.tensor(2.5),
        torch.randn(3).to(torch.bfloat16),
        torch.randn(3).to(torch.float8_e4m3fn),
        torch.tensor([True, False]),
        torch.tensor([2**64 - 1], dtype=torch.uint64),
        torch.tensor([1 + 2j]).conj(),
        torch.tensor([1 + 2j]).conj().imag,
        nn.Parameter(torch.randn(3)),
    ],
    ids=["transposed", "part", "expanded", "scalar", "bf16", "fp8", "bool", "uint64", "conj", "neg", "parameter"],
)
@pytest.mark.parametrize("held", [False, True], ids=["at once", "held"])
def test_files_hold_the_values_and_no_more(tmp_path: Path, tensor: Tensor, held: bool) -> None:
    before = tensor.detach().clone()
    storage = (tensor.untyped_storage().data_ptr(), tensor.untyped_storage().nbytes())
    recorded(
        tmp_path, Around(Echo()), tensor, keys={"task": "tensor", "async_dump": held, "tensor": {"list": ["inner"]}}
    )
    (found,) = saved(tmp_path).values()
    assert (type(found), found.requires_grad, found.is_contiguous()) == (Tensor, False, True)
    assert (found.dtype, found.shape) == (tensor.dtype, tensor.shape)
    assert found.untyped_storage().nbytes() == found.numel() * found.element_size()
    assert torch.equal(comparable(found), comparable(before))
    assert storage == (tensor.untyped_storage().data_ptr(), tensor.untyped_storage().nbytes())
    assert torch.equal(comparable(tensor.detach()), comparable(before))


def comparable(tensor: Tensor) -> Tensor:
    """Eight-bit floats cannot be compared as they are."""
    return tensor.float() if tensor.element_size() == 1 else tensor


@pytest.mark.parametrize("held", [False, True], ids=["at once", "held"])
def test_what_is_overwritten_later_is_saved_as_it_was(tmp_path: Path, held: bool) -> None:
    keys = {"task": "tensor", "async_dump": held, "tensor": {"list": ["Module"]}}
    recorded(tmp_path, InPlace(), torch.tensor([-2.0, 4.0]), keys=keys)
    files = saved(tmp_path)
    assert files["Module.halve.Halve.forward.0.input.0.pt"].tolist() == [-2.0, 4.0]
    assert files["Module.relu.ReLU.forward.0.input.0.pt"].tolist() == [-1.0, 2.0]
    assert files["Module.relu.ReLU.forward.0.output.0.pt"].tolist() == [0.0, 2.0]


def test_held_tensors_are_written_at_the_stop_and_let_go_of(tmp_path: Path) -> None:
    debugger = debugger_with(tmp_path, task="tensor", async_dump=True, tensor={"list": ["inner"]})
    model = Around(Echo())
    debugger.start(model)
    model(ones(1))
    folder = only_rank(tmp_path / "dump" / "step0")
    assert list(folder.glob("*/*")) == []
    debugger.stop()
    assert [path.name for path in folder.glob("*/*")] == [f"{ECHO}.input.0.pt"]


def test_a_slice_is_what_is_saved(tmp_path: Path) -> None:
    keys = {"task": "tensor", "tensor": {"list": ["inner"], "slice": [{"dim": 0, "begin": 1}]}}
    recorded(tmp_path, Around(Echo()), torch.arange(3), keys=keys)
    assert [found.tolist() for found in saved(tmp_path).values()] == [[1, 2]]


def test_tensor_list_names_the_entries_whose_tensors_are_saved(tmp_path: Path) -> None:
    dump = recorded(tmp_path, Mlp(), ones(2, 4), keys={"statistics": {"tensor_list": ["down", "nowhere"]}})
    assert {name.split(".forward")[0] for name in saved(tmp_path)} == {"Module.body.down.Linear"}
    assert sorted(names_in(dump.data)) == sorted(saved(tmp_path))
    assert dump.dump["dump_data_dir"].endswith("dump_tensor_data")
    assert len(dump.data) == 5


def test_without_files_there_is_no_folder_for_them(tmp_path: Path) -> None:
    dump = recorded(tmp_path, Mlp(), ones(2, 4), keys={})
    assert dump.dump["dump_data_dir"] is None
    assert not list(tmp_path.glob("dump/*/*/dump_tensor_data"))


HOSTILE = ["a/b", "a_b", "../../up", "a\0b", "é", "\udcff", "x" * 400, "x" * 399 + "y", "a.b", ".", "..", ""]


def test_names_that_are_no_file_names_are_made_into_such(tmp_path: Path) -> None:
    values = {key: torch.tensor(index) for index, key in enumerate(HOSTILE)} | {"a": {"b": torch.tensor(99)}}
    dump = tensor_dump(tmp_path, values)
    files = saved(tmp_path)
    records = dump.data[ECHO]["input_args"][0]
    # The folder holds these and nothing but these, each under the name that its record gives.
    assert {key: files[records[key]["data_name"]].item() for key in HOSTILE} == dict(
        zip(HOSTILE, range(len(HOSTILE)), strict=True)
    )
    assert files[records["a"]["b"]["data_name"]].item() == 99
    assert len(files) == len(HOSTILE) + 1
    assert dump.meta["problems"] == []


@given(st.lists(st.text(), max_size=30))
def test_names_are_safe_and_unique_whatever_the_place(places: list[str]) -> None:
    names = TensorNames()
    given_out = [names.name(f"Module.{place}") for place in places]
    assert len(set(given_out)) == len(given_out)
    for name in given_out:
        assert len(os.fsencode(name)) <= 255
        assert Path(name).name == name
    assert given_out == [again.name(f"Module.{place}") for again in [TensorNames()] for place in places]


@pytest.mark.parametrize("places", [["M.a/b", "M.a_b"], ["M." + "x" * 300, "M." + "x" * 301]])
def test_a_name_that_was_made_safe_does_not_hang_on_what_came_before(places: list[str]) -> None:
    """So that the dumps of two runs or ranks pair up."""
    forth, back = TensorNames(), TensorNames()
    assert [forth.name(place) for place in places] == [back.name(place) for place in places[::-1]][::-1]


def test_a_plain_name_stays_as_it_is() -> None:
    assert TensorNames().name("Module.0.Linear.forward.0.kwargs.opts.t") == "Module.0.Linear.forward.0.kwargs.opts.t.pt"


@pytest.mark.parametrize("held", [False, True], ids=["at once", "held"])
def test_a_file_that_cannot_be_written_leaves_its_record_without_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, held: bool
) -> None:
    original = torch.save
    sizes: list[int] = []

    def full(tensor: Tensor, file: IO[bytes]) -> None:
        sizes.append(tensor.numel())
        if tensor.numel() == 2:
            file.write(b"half of it")
            raise OSError(28, "No space left on device")
        original(tensor, file)

    monkeypatch.setattr(torch, "save", full)
    keys = {"task": "tensor", "async_dump": held, "tensor": {"list": ["inner"]}}
    dump = recorded(tmp_path, Around(Echo((ones(2), ones(2)))), ones(3), keys=keys)
    assert sizes == [3, 2, 2]
    assert list(saved(tmp_path)) == names_in(dump.data[ECHO]) == [f"{ECHO}.input.0.pt"]
    assert [record["Max"] for record in dump.data[ECHO]["output"]] == [1.0, 1.0]
    (problem,) = dump.meta["problems"]
    assert (problem["kind"], problem["count"]) == ("saving a tensor", 2)
    assert caplog.text.count("No space left on device") == 1


def test_the_limit_bounds_the_files_of_a_dump(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    mebibyte = torch.zeros(tensor_files.MIB // 4)
    keys = {"task": "tensor", "limits": {"tensor_mib": 3}, "tensor": {"list": ["inner"]}}
    dump = recorded(tmp_path, Around(Echo()), *([mebibyte] * 4), ones(1), keys=keys)
    # With what surrounds the values, three are more than 3 MiB; the small one behind them is left out as well.
    assert names_in(dump.data[ECHO]) == list(saved(tmp_path)) == [f"{ECHO}.input.{index}.pt" for index in (0, 1)]
    used = sum(path.stat().st_size for path in tmp_path.glob("dump/*/*/dump_tensor_data/*"))
    assert 2 * tensor_files.MIB < used <= 3 * tensor_files.MIB
    (problem,) = dump.meta["problems"]
    assert (problem["kind"], problem["count"]) == ("saving tensors", 3)
    assert problem["message"] == "limits.tensor_mib, 3 MiB, is reached; later ones are not saved"
    assert caplog.text.count("limits.tensor_mib") == 1
    assert [record["Max"] for record in dump.data[ECHO]["input_args"]] == [0.0, 0.0, 0.0, 0.0, 1.0]


def test_what_surrounds_the_values_is_no_more_than_what_is_counted_for_it(tmp_path: Path) -> None:
    tensor_dump(tmp_path, ones(1), **{"k" * 230: ones(1)})
    assert {path.stat().st_size < tensor_files.FILE_BYTES for path in tmp_path.glob("dump/*/*/dump_tensor_data/*")} == {
        True
    }


def test_each_dump_has_the_limit_for_itself(tmp_path: Path) -> None:
    debugger = debugger_with(tmp_path, task="tensor", limits={"tensor_mib": 1})
    model = Around(Echo())
    for _ in range(2):
        debugger.start(model)
        model(torch.zeros(200_000))
        debugger.step()
    assert len(list(tmp_path.glob("dump/*/*/dump_tensor_data/*"))) == 2


def test_entries_beyond_the_limit_are_left_out_and_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    debugger = debugger_with(tmp_path, limits={"entries": 5}, statistics={"summary_mode": ["max"]})
    model = Mlp()
    debugger.start(model)
    model(ones(2, 4)).sum().backward()
    debugger.stop()
    dump = read_dump(only_rank(tmp_path / "dump" / "step0"))
    # The model and its 4 modules, and nothing of what flows back.
    assert len(dump.data) == dump.meta["entries"] == 5
    assert set(dump.construct) <= set(dump.data)
    (problem,) = dump.meta["problems"]
    assert problem["kind"] == "recording entries"
    assert problem["message"] == "limits.entries, 5, is reached; later ones are left out"
    assert caplog.text.count("limits.entries") == 1


def test_a_limit_of_entries_changes_no_numbers_of_calls(tmp_path: Path) -> None:
    debugger = debugger_with(tmp_path, limits={"entries": 1}, statistics={"list": ["inner"]})
    model = Around(Echo())
    for _ in range(3):
        debugger.start(model)
        model(ones(1))
        debugger.stop()
    dump = read_dump(only_rank(tmp_path / "dump" / "step0"))
    assert list(dump.data) == [ECHO]
    assert dump.meta["problems"][0]["count"] == 2
    debugger.step()
    debugger.start(model)
    model(ones(1))
    debugger.stop()
    assert list(read_dump(only_rank(tmp_path / "dump" / "step1")).data) == [ECHO]


def test_a_file_written_for_an_array_has_its_values(tmp_path: Path) -> None:
    array = np.arange(6, dtype=">f4").reshape(2, 3)[:, ::2]
    dump = tensor_dump(tmp_path, array)
    (found,) = saved(tmp_path).values()
    assert (found.dtype, found.tolist()) == (torch.float32, [[0.0, 2.0], [3.0, 5.0]])
    assert list(dump.data[ECHO]["input_args"][0]) == [
        "type", "dtype", "shape", "Max", "Min", "Mean", "Norm", "data_name",
    ]  # fmt: skip


def test_dump_json_is_the_same_but_for_the_names_of_files(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Mlp()
    with_files = recorded(tmp_path / "a", model, ones(2, 4), keys={"task": "tensor"}).data
    without = recorded(tmp_path / "b", model, ones(2, 4), keys={}).data

    def drop(record: dict[str, Any]) -> dict[str, Any]:
        record.pop("data_name", None)
        return record

    assert json.loads(json.dumps(with_files), object_hook=drop) == without
