"""With torch.distributed: the rank it gives, and the records of its values."""

import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard

from probe_patch.runtime.debugger import PrecisionDebugger
from tests.runtime.configs import recorded
from tests.runtime.dumps import only_rank, read_dump
from tests.runtime.toys import Around, Echo, ones


@pytest.fixture
def group(tmp_path: Path) -> Iterator[None]:
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/rendezvous", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("group")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_ranks_and_distributed_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "7")
    mesh = init_device_mesh("cpu", (1, 1, 1))
    spread = DTensor.from_local(ones(4, 2), mesh, [Shard(0), Replicate(), Partial("sum")])
    debugger = PrecisionDebugger(dump_path=str(tmp_path / "dump"))
    model = Around(Echo())
    debugger.start(model)
    model(x=spread, group=dist.group.WORLD)
    debugger.stop()
    folder = only_rank(tmp_path / "dump" / "step0")
    assert folder.name == "rank0"
    dump = read_dump(folder)
    assert (dump.meta["rank"], dump.meta["world_size"]) == (0, 1)
    found = dump.data["Module.inner.Echo.forward.0"]["input_kwargs"]
    assert found["group"] == {"type": "torch.ProcessGroup", "group_ranks": [0], "group_id": "553403f9"}
    tensor = found["x"]
    assert (tensor["type"], tensor["shape"]) == ("torch.distributed.tensor.DTensor", [4, 2])
    assert tensor["Norm"] == pytest.approx(torch.linalg.vector_norm(ones(8)).item())
    assert tensor["device_mesh"] == [[[0]]]
    assert tensor["placements"] == [{"Shard": {"dim": 0}}, {"Replicate": {}}, {"Partial": {"reduce_op": "sum"}}]


@pytest.mark.usefixtures("group")
def test_what_is_taken_of_a_distributed_tensor_is_its_local_shard(tmp_path: Path) -> None:
    mesh = init_device_mesh("cpu", (1,))
    local = torch.arange(6.0).reshape(2, 3).t()
    spread = DTensor.from_local(local, mesh, [Shard(0)])
    keys = {"task": "tensor", "tensor": {"summary_mode": "md5", "slice": [{"dim": 0, "begin": 1}]}}
    dump = recorded(tmp_path, Around(Echo()), spread, keys=keys)
    (record,) = dump.data["Module.inner.Echo.forward.0"]["input_args"]
    assert (record["shape"], record["Max"], record["Min"]) == ([2, 2], 5.0, 1.0)
    assert record["md5"] == f"{zlib.crc32(local[1:].numpy().tobytes()):08x}"
    found = torch.load(Path(dump.dump["dump_data_dir"]) / record["data_name"], weights_only=True)
    assert torch.equal(found, local[1:])
    assert list(record)[-5:] == ["requires_grad", "device_mesh", "placements", "data_name", "md5"]
    assert dump.meta["problems"] == []


@pytest.mark.usefixtures("group")
def test_a_point_to_point_operation_is_told_with_its_tensor(tmp_path: Path) -> None:
    operations = [dist.P2POp(dist.isend, ones(2), 0, tag=3), dist.P2POp(dist.irecv, ones(3), 0, dist.group.WORLD)]
    dump = recorded(tmp_path, Around(Echo()), operations, keys={"task": "tensor"})
    (records,) = dump.data["Module.inner.Echo.forward.0"]["input_args"]
    assert [(record["op"], record["peer"], record["tag"], record["group_id"]) for record in records] == [
        ("isend", 0, 3, "553403f9"),
        ("irecv", 0, 0, "553403f9"),
    ]
    assert list(records[0]) == ["class_type", "tensor", "op", "peer", "tag", "group_id"]
    assert [record["tensor"]["data_name"] for record in records] == [
        f"Module.inner.Echo.forward.0.input.0.{index}.pt" for index in (0, 1)
    ]
    assert dump.meta["problems"] == []
