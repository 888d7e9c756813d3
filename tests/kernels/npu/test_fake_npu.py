"""A model on an NPU, which a device in Python plays, is recorded as it is on the host."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.needs import needs
from tests.runtime.dumps import DumpOnDisk, only_rank, read_dump

REPOSITORY = Path(__file__).parents[3]


class Run:
    """What the program printed and wrote."""

    def __init__(self, folder: Path, summary_mode: str) -> None:
        command = [sys.executable, "-m", "tests.kernels.npu.npu_program", str(folder), summary_mode]
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        self.summary_mode = summary_mode
        self.log = done.stderr
        self.seen: dict[str, dict[str, list[str]]] = json.loads(done.stdout)
        self.npu = self._dump(folder / "npu")
        self.host = self._dump(folder / "cpu")

    @staticmethod
    def _dump(folder: Path) -> DumpOnDisk:
        return read_dump(only_rank(folder / "dump" / "step0"))


@pytest.fixture(scope="module", params=["statistics", "md5", "xor"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    setup = getattr(torch.utils.backend_registration, "_setup_privateuseone_for_python_backend", None)
    needs(setup is not None, "this torch has no devices in Python")
    return Run(tmp_path_factory.mktemp(request.param), request.param)


def tensors(record: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """The records of tensors, by their place."""
    if isinstance(record, list):
        record = dict(enumerate(record))
    if not isinstance(record, dict):
        return
    if record.get("type") == "torch.Tensor":
        yield place, record
        return
    for key, part in record.items():
        yield from tensors(part, f"{place}.{key}")


def numbers(record: dict[str, Any]) -> list[Any]:
    return [record[key] for key in ("Max", "Min", "Mean", "Norm", "md5") if key in record]


def test_the_numbers_are_the_hosts(run: Run) -> None:
    on_npu, on_host = dict(tensors(run.npu.data)), dict(tensors(run.host.data))
    assert on_npu.keys() == on_host.keys()
    private = {place for place, record in on_npu.items() if set(numbers(record)) == {None}}
    # Once as the module's parameter, once as the function's argument.
    assert private == {
        ".Module.body.down.Linear.forward.0.parameters.weight",
        ".Functional.linear.1.forward.input_args.1",
    }
    for place in on_npu.keys() - private:
        for one, other in zip(numbers(on_npu[place]), numbers(on_host[place]), strict=True):
            assert one == other or one == pytest.approx(other, rel=1e-6, abs=1e-6), place


def test_tensors_in_private_formats_are_left_alone(run: Run) -> None:
    # By such a view of it autograd tells where a parameter's gradient will be.
    ran = [operation for operation in run.seen["recorded"]["on_private"] if operation != "aten.view.default"]
    assert ran == run.seen["plain"]["on_private"]
    assert run.seen["stopping"]["on_private"] == []


def test_they_are_said_to_have_no_numbers(run: Run) -> None:
    (said,) = [problem for problem in run.npu.meta["problems"] if "private" in problem["kind"]]
    assert "FRACTAL_NZ" in said["message"]
    assert run.log.count("FRACTAL_NZ") == 1


def test_nothing_is_in_float64(run: Run) -> None:
    assert run.seen["recorded"]["float64"] == []


def test_the_host_waits_once_when_the_recording_stops(run: Run) -> None:
    assert run.seen["stopping"]["waits"] == ["synchronize", "aten._to_copy.default"]
    if run.summary_mode == "md5":
        # Without triton-ascend there are no kernels for CRC-32. What a module and its function share is looked at once.
        taken = [record for _, record in tensors(run.npu.data) if record["md5"] is not None]
        assert len(taken) / 2 < len(run.seen["recorded"]["waits"]) < len(taken)
    else:
        assert run.seen["recorded"]["waits"] == []


def test_checksums_that_wait_are_told_of(run: Run) -> None:
    told = [problem["message"] for problem in run.npu.meta["problems"] if "checksums" in problem["kind"]]
    assert len(told) == (run.summary_mode != "statistics")
    assert all("pip install triton-ascend" in message for message in told)
