"""torch.distributed: what goes in, what has been received when it is complete, and that the run does not notice."""

import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.distributed import all_reduce
from torch.utils.checkpoint import checkpoint

from tests.runtime.functions import two_ranks
from tests.runtime.functions.recording import Recording, recorded
from tests.runtime.toys import Around, ones

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module", autouse=True)
def group(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("group")
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    names = [name for name, value in vars(dist).items() if type(value) is FunctionType]
    before = {name: getattr(dist, name).__code__ for name in names}
    wait = vars(dist.Work)["wait"]
    yield
    assert {name: getattr(dist, name).__code__ for name in names} == before
    assert vars(dist.Work)["wait"] is wait


def test_what_is_given_and_what_is_there_when_it_is_complete() -> None:
    x = ones(2)
    entry = recorded(lambda: dist.all_reduce(x, op=dist.ReduceOp.MAX)).data["Distributed.all_reduce.0.forward"]
    operation = {"type": "torch.distributed.ReduceOp", "value": "RedOpType.MAX"}
    assert [record["Max"] for record in entry["input_args"]] == [1.0]
    assert entry["input_kwargs"] == {"op": operation}
    assert [entry["output"][0]["Max"], entry["output"][1]] == [1.0, operation]
    assert len(entry["output"]) == 2


def test_a_function_that_was_imported_early_is_recorded_and_stays_the_same_object() -> None:
    before = dist.all_reduce

    def work() -> None:
        all_reduce(ones(1))
        assert dist.all_reduce is before is all_reduce
        assert pickle.loads(pickle.dumps(all_reduce)) is all_reduce

    assert recorded(work).names() == ["Torch.ones", "Distributed.all_reduce"]


@pytest.mark.parametrize("by_name", [False, True])
def test_a_buffer_that_only_receives_is_null_in_the_input(by_name: bool) -> None:
    parts = [torch.full((2,), torch.nan)]

    def work() -> None:
        if by_name:
            dist.all_gather(tensor_list=parts, tensor=X)
        else:
            dist.all_gather(parts, X)

    entry = recorded(work).data["Distributed.all_gather.0.forward"]
    given = list(entry["input_kwargs"].values()) if by_name else entry["input_args"]
    assert (given[0], given[1]["Max"]) == (None, 1.0)
    assert (entry["output"][0][0]["Max"], entry["output"][1]["Max"]) == (1.0, 1.0)


X = ones(2)


def test_asynchronous_communication_is_recorded_when_it_is_waited_for() -> None:
    recording, x = Recording(), ones(2)
    recording.start()
    work: Any = dist.all_reduce(x, async_op=True)
    torch.exp(X)
    x.fill_(3)  # as if it had arrived only now
    work.wait()
    x.fill_(7)
    dump = recording.stop()
    assert dump.data["Distributed.all_reduce.0.forward"]["output"][0]["Max"] == 3.0
    assert [name for name in dump.names() if name != "Tensor.fill_"] == ["Distributed.all_reduce", "Torch.exp"]
    assert dump.problems == ()


def test_what_is_not_waited_for_has_no_output_and_that_is_said() -> None:
    recording = Recording()
    recording.start()
    work: Any = dist.all_reduce(ones(2), async_op=True)
    dist.barrier()
    dump = recording.stop()
    assert list(dump.data["Distributed.all_reduce.0.forward"]) == ["input_args", "input_kwargs"]
    assert ["not waited for" in problem.message for problem in dump.problems] == [True]
    work.wait()


def test_a_work_that_belongs_to_no_recording_can_be_waited_for() -> None:
    work: Any = dist.all_reduce(ones(2), async_op=True)
    dump = recorded(lambda: work.wait())
    assert (dump.data, dump.problems) == ({}, ())


class Communicates(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = x * 2
        dist.all_reduce(y.detach())
        return y


def test_it_belongs_to_the_module_it_is_called_in() -> None:
    parents = recorded(lambda: Around(Communicates()), model=nn.Identity()).parents
    assert parents == {}
    model = Around(Communicates())
    parents = recorded(lambda: model(X), model=model).parents
    assert parents["Distributed.all_reduce.0.forward"] == "Module.inner.Communicates.forward.0"


def test_the_outermost_call_is_recorded() -> None:
    def work() -> None:
        dist.all_gather_object([None], {"a": 1})
        dist.reduce_scatter_tensor(ones(2), ones(2))

    names = recorded(work).names()
    # all_gather_object is none that is recorded; what it calls is.
    assert names.count("Distributed.all_gather") == 2
    assert [name for name in names if name.startswith("Distributed")][-1] == "Distributed.reduce_scatter_tensor"


def test_after_one_that_raised_the_others_are_still_recorded() -> None:
    def work() -> None:
        with pytest.raises(TypeError):
            dist.all_reduce("no tensor")
        dist.all_reduce(X)

    assert [entry for entry in recorded(work).data if entry.startswith("Distributed")] == [
        "Distributed.all_reduce.0.forward",
        "Distributed.all_reduce.1.forward",
    ]


def test_recomputation_inside_a_backward_pass_is_not_recorded() -> None:
    model = Around(Communicates())
    x = ones(2).requires_grad_()
    dump = recorded(lambda: checkpoint(model, x, use_reentrant=False).sum().backward(), model=model, backward=True)
    assert [name for name in dump.data if name.startswith("Distributed")] == ["Distributed.all_reduce.0.forward"]


def test_a_thread_of_somebody_elses_is_not_recorded() -> None:
    def work() -> None:
        thread = threading.Thread(target=dist.all_reduce, args=(ones(1),))
        thread.start()
        thread.join()
        dist.all_reduce(ones(1))

    assert recorded(work).names().count("Distributed.all_reduce") == 1


@pytest.mark.parametrize("first_to_stop", [0, 1])
def test_two_recordings_may_end_in_any_order(first_to_stop: int) -> None:
    recordings = [Recording(), Recording()]
    for recording in recordings:
        recording.start()
    dist.all_reduce(X)
    first = recordings.pop(first_to_stop).stop()
    work: Any = dist.broadcast(X, 0, async_op=True)
    work.wait()
    last = recordings[0].stop()
    assert first.names() == ["Distributed.all_reduce"]
    assert last.names() == ["Distributed.all_reduce", "Distributed.broadcast"]
    assert first.problems == last.problems == ()


def test_compiled_communication_runs_compiled_and_is_not_recorded() -> None:
    def reduced(x: Tensor) -> Tensor:
        y = x * 2
        dist.all_reduce(y)
        return y + 1

    torch.compiler.reset()
    expected = reduced(X)
    compiled = torch.compile(reduced, backend="eager", fullgraph=True)
    results: list[Tensor] = []
    dump = recorded(lambda: results.append(compiled(X)))
    results.append(compiled(X))
    assert all(torch.equal(result, expected) for result in results)
    assert not any(name.startswith("Distributed") for name in dump.names())


def test_what_is_queued_to_run_with_others_has_no_output_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    # gloo does not coalesce; torch keeps what it has queued here.
    queued: dict[Any, Any] = dist.distributed_c10d._world.pg_coalesce_state
    monkeypatch.setitem(queued, "a group", [])
    dump = recorded(lambda: dist.all_reduce(ones(2)))
    assert list(dump.data["Distributed.all_reduce.0.forward"]) == ["input_args", "input_kwargs"]
    assert ["together with others" in problem.message for problem in dump.problems] == [True]


def test_two_ranks(tmp_path: Path) -> None:
    command = [sys.executable, str(Path(two_ranks.__file__)), str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    running = [subprocess.Popen([*command, rank], env=environment, stderr=subprocess.PIPE) for rank in ("0", "1")]
    errors = [process.communicate(timeout=120)[1] for process in running]
    assert [process.returncode for process in running] == [0, 0], errors
    for rank in (0, 1):
        found = json.loads((tmp_path / f"{rank}.json").read_text())
        data = {name: entry for name, entry in found["data"].items() if name.startswith("Distributed")}
        assert found["problems"] == []
        sent_or_received = f"Distributed.{'irecv' if rank else 'isend'}.0.forward"
        assert list(data) == [
            "Distributed.all_gather.0.forward",
            "Distributed.reduce.0.forward",
            sent_or_received,
            "Distributed.batch_isend_irecv.0.forward",
            "Distributed.all_gather.1.forward",
            "Distributed.all_gather.2.forward",
        ]
        gathered = data["Distributed.all_gather.0.forward"]
        assert gathered["input_args"][0] is None
        assert [part["Max"] for part in gathered["output"][0]] == [1.0, 2.0]
        reduced = data["Distributed.reduce.0.forward"]
        assert reduced["input_kwargs"]["tensor"]["Max"] == rank + 1
        if rank == 0:
            assert reduced["output"][0]["Max"] == 3.0
            assert (data[sent_or_received]["input_args"][0]["Max"], data[sent_or_received]["output"][0]) == (3.0, None)
        else:
            assert (data[sent_or_received]["input_args"][0], data[sent_or_received]["output"][0]["Max"]) == (None, 3.0)
        batch = data["Distributed.batch_isend_irecv.0.forward"]
        sent, received = batch["output"][0]
        assert [sent["class_type"], sent["op"], sent["peer"], sent["group_id"]] == [
            "torch.distributed.P2POp",
            "isend",
            1 - rank,
            "77849d8c",
        ]
        assert (sent["tensor"]["Max"], received["op"], received["tensor"]["Max"]) == (5.0 + rank, "irecv", 6.0 - rank)
