"""Several debuggers in one process: nothing of one is in another's dump, and nothing is lost."""

import gc
import os
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from probe_patch.runtime.debugger import PrecisionDebugger
from tests.runtime.conftest import AskedFor
from tests.runtime.dumps import DumpOnDisk, read_dump
from tests.runtime.toys import Around, Mlp, ones

LEVELS = ["L0", "L1", "mix"]


def own_name(number: int = 1) -> str:
    name = f"rank0_{socket.gethostname()}_{os.getpid()}"
    return name if number == 1 else f"{name}_{number}"


def widths(dump: DumpOnDisk) -> set[int]:
    """The sizes of the last dimension of every tensor's record: models of different widths cannot be mixed up."""
    return set(_last_lengths(dump.data))


def _last_lengths(record: object) -> Iterator[int]:
    if isinstance(record, dict) and record.get("type") == "torch.Tensor":
        yield from record["shape"][-1:]
    elif isinstance(record, dict | list):
        for part in record.values() if isinstance(record, dict) else record:
            yield from _last_lengths(part)


def hooks_of(model: nn.Module) -> int:
    return sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules())


def test_on_one_dump_path_each_has_a_folder_of_its_own(
    asked_for: AskedFor, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model, debuggers = Around(nn.Identity()), [asked_for() for _ in range(3)]
    for step in range(2):
        for width, debugger in enumerate(debuggers, 1):
            debugger.start(model)
            model(ones(step + 1, width))
            debugger.stop()
            debugger.step()
    names = ["rank0", own_name(), own_name(2)]
    for step in range(2):
        assert {path.name for path in (tmp_path / f"dump/step{step}").iterdir()} == set(names)
        for width, name in enumerate(names, 1):
            assert widths(read_dump(tmp_path / f"dump/step{step}/{name}")) == {width}
    said = "another debugger of this process writes rank0"
    assert [text.endswith(f"this one writes {names[index]}") for index, text in enumerate(caplog.messages, 1)] == [
        True
    ] * 2
    assert all(said in text for text in caplog.messages)


def test_a_debugger_that_is_gone_leaves_its_folder_to_the_next(asked_for: AskedFor, tmp_path: Path) -> None:
    model = Around(nn.Identity())
    debugger = asked_for()
    for width in (1, 2):
        debugger.start(model)
        model(ones(1, width))
        debugger.stop()
        debugger = asked_for()
    assert widths(read_dump(tmp_path / "dump/step0/rank0")) == {2}
    assert widths(read_dump(tmp_path / "dump.replaced/step0-rank0-1")) == {1}


class Summed(Mlp):
    """All in modules: functions between modules of two models on one thread are nobody's in particular."""

    def forward(self, x: Tensor) -> Tensor:
        total: Tensor = super().forward(x).sum()
        return total


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("first_stops_first", [True, False])
def test_two_models_in_turns_with_stops_in_any_order(
    asked_for: AskedFor, tmp_path: Path, level: str, first_stops_first: bool
) -> None:
    models = [Around(Summed(width)) for width in (3, 5)]
    debuggers = [asked_for(level=level, dump_path=str(tmp_path / name)) for name in ("a", "b")]
    for debugger, model in zip(debuggers, models, strict=True):
        debugger.start(model)
    for model, width in zip(models, (3, 5), strict=True):
        model(ones(1, width)).backward()
    for debugger in debuggers if first_stops_first else debuggers[::-1]:
        debugger.stop()
    dumps = [read_dump(tmp_path / name / "step0/rank0") for name in ("a", "b")]
    inside = [{length for length in widths(dump) if length != 1} for dump in dumps]
    assert inside == [{3, 6}, {5, 10}]
    assert [hooks_of(model) for model in models] == [0, 0]
    assert torch._C._len_torch_function_stack() == 0


def test_one_model_in_two_debuggers_is_whole_in_both(asked_for: AskedFor, tmp_path: Path) -> None:
    model = Mlp()
    debuggers = [asked_for(dump_path=str(tmp_path / name)) for name in ("a", "b")]
    for debugger in debuggers:
        debugger.start(model)
    model(ones(1, 4)).sum().backward()
    debuggers[0].stop()
    model(ones(1, 4)).sum().backward()
    debuggers[1].stop()
    a, b = (read_dump(tmp_path / name / "step0/rank0").data for name in ("a", "b"))
    assert len(b) == 2 * len(a)
    assert all(b[entry] == record for entry, record in a.items())


@pytest.mark.parametrize("level", LEVELS)
def test_two_threads_each_with_its_own(asked_for: AskedFor, tmp_path: Path, level: str) -> None:
    steps, wall = 4, threading.Barrier(2)
    debuggers = {width: asked_for(level=level, dump_path=str(tmp_path / str(width))) for width in (3, 5)}

    def train(width: int) -> None:
        model = Mlp(width)
        for _ in range(steps):
            wall.wait(30)
            debuggers[width].start(model)
            model(ones(1, width)).sum().backward()
            debuggers[width].stop()
            debuggers[width].step()

    threads = [threading.Thread(target=train, args=(width,)) for width in debuggers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for width in debuggers:
        dumps = [read_dump(tmp_path / f"{width}/step{step}/rank0") for step in range(steps)]
        assert [widths(dump) - {1} for dump in dumps] == [{width, 2 * width}] * steps
        assert [set(dump.data) for dump in dumps] == [set(dumps[0].data)] * steps
        assert [dump.meta["problems"] for dump in dumps] == [[]] * steps


@pytest.mark.parametrize("level", LEVELS)
def test_a_debugger_that_goes_while_it_records_leaves_nothing_and_writes_what_it_has(
    asked_for: AskedFor, tmp_path: Path, level: str
) -> None:
    model, another = Mlp(), asked_for(dump_path=str(tmp_path / "another"))
    debugger = asked_for(level=level)
    gone = weakref.ref(debugger)
    debugger.start(model)
    model(ones(1, 4))
    del debugger
    gc.collect()
    assert gone() is None
    assert another.service.running is None
    assert hooks_of(model) == 0
    assert torch._C._len_torch_function_stack() == 0
    dump = read_dump(tmp_path / "dump/step0/rank0")
    assert dump.data
    assert [problem["kind"] for problem in dump.meta["problems"]] == ["stopping"]


ENDS_WITHOUT_A_STOP = """
import sys
from torch import nn, ones
from probe_patch.runtime import PrecisionDebugger
debugger, model = PrecisionDebugger(dump_path=sys.argv[1], level=sys.argv[2]), nn.Sequential(nn.Identity())
debugger.start(model)
model(ones(1))
debugger.save(3, "x")
if len(sys.argv) > 3:
    raise ValueError("planned")
"""


@pytest.mark.parametrize(("level", "name"), [("L0", "dump.json"), ("mix", "dump.json"), ("debug", "debug.json")])
@pytest.mark.parametrize("ending", [[], ["raises"]], ids=["ends", "raises"])
def test_a_process_that_ends_without_a_stop_writes_what_it_has(
    tmp_path: Path, level: str, name: str, ending: list[str]
) -> None:
    command = [sys.executable, "-c", ENDS_WITHOUT_A_STOP, str(tmp_path / "dump"), level, *ending]
    environment = os.environ | {"RANK": "0"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert done.returncode == bool(ending), done.stderr
    text = (tmp_path / "dump/step0/rank0" / name).read_text()
    assert ("x.0.debug" if level == "debug" else "Module.0.Identity.forward.0") in text


class Inner(nn.Module):
    """Records something else with a debugger of its own, inside another one's recording."""

    def __init__(self, debugger: PrecisionDebugger, helper: nn.Module) -> None:
        super().__init__()
        self.debugger = debugger
        self.unseen = [helper]

    def forward(self, x: Tensor) -> Tensor:
        self.debugger.start(self.unseen[0])
        self.unseen[0](ones(1, 7))
        self.debugger.stop()
        return x


def test_a_recording_inside_a_module_of_another_one(asked_for: AskedFor, tmp_path: Path) -> None:
    outer, inner = asked_for(), asked_for(dump_path=str(tmp_path / "inner"))
    model = nn.Sequential(Inner(inner, Around(nn.Identity())), nn.Identity())
    outer.start(model)
    model(ones(1, 2))
    outer.stop()
    assert widths(read_dump(tmp_path / "dump/step0/rank0")) == {2}
    assert widths(read_dump(tmp_path / "inner/step0/rank0")) == {7}
