"""With torch.distributed: the rank it gives, and the records of its values."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard

from probe_patch.runtime.debugger import PrecisionDebugger
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
