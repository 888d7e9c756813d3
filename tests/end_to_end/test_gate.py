"""DUMP_ON, by all its spellings, in the file as the patcher leaves it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from probe_patch.demo.fixture import ERAS, actor_file, lay_out, package_name
from probe_patch.patcher.markers import find_blocks, split_lines
from tests.harness.method_layers import method_layers
from tests.harness.patching import patched
from tests.harness.run_actor import run_actor
from tests.harness.scenarios import Scenario
from tests.harness.trace import Trace

ON = ("1", "true", "YES", " on ", "True\n")
OFF = (None, "", "0", "false", "No", "off", " ")
WRONG = ("2", "maybe", "truee", "01", "-")

each_era = pytest.mark.parametrize("era", ERAS)


@pytest.fixture
def source(era: str, tmp_path: Path) -> bytes:
    return (lay_out(era, tmp_path / "tree") / actor_file(era)).read_bytes()


def run(source: bytes, era: str, dump_on: str | None) -> Trace:
    """The critic runs no phase of ours, so the surroundings of any era will do."""
    package = f"{package_name(era)}.backends.megatron_utils"
    return run_actor(source, Scenario("critic", role="critic"), dump_on=dump_on, package=package)


def prelude_of(source: bytes) -> str:
    block = find_blocks(source, "actor.py")[0]
    assert block.name == "prelude"
    return b"".join(split_lines(source)[block.first : block.last + 1]).decode()


def untouched(rollout_id: int) -> int:
    return rollout_id


@pytest.mark.parametrize("era", [era for era in ERAS if era != "miles"])  # whose own decorators the harness stubs
@pytest.mark.parametrize("dump_on", OFF, ids=repr)
def test_off_the_class_is_the_one_the_file_defines(source: bytes, era: str, dump_on: str | None) -> None:
    unpatched, trace = run(source, era, None), run(patched(source), era, dump_on)
    assert not [name for name in trace.imports if name.startswith("probe_patch")]
    assert trace.imports[1:] == unpatched.imports  # the one more is os
    rollout = "train_actor" if hasattr(trace.actor_class, "train_actor") else "train"
    for name in ("init", rollout):
        assert method_layers(trace.actor_class, name) == method_layers(unpatched.actor_class, name)
    assert method_layers(trace.actor_class, rollout) == (f"actor.py:{rollout}",)
    assert not hasattr(trace.actor, "debugger")


@each_era
@pytest.mark.parametrize("dump_on", ON, ids=repr)
def test_on_the_function_is_wrapped(source: bytes, era: str, dump_on: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUMP_ON", dump_on)
    module: dict[str, object] = {}
    exec(prelude_of(patched(source)), module)
    assert module["_probe_patch"] is not None
    decorate = module["_probe_patch_rollout"]
    assert callable(decorate)
    assert decorate(untouched).__wrapped__ is untouched


@pytest.mark.parametrize("era", ["E3", "E15", "miles"])
@pytest.mark.parametrize("dump_on", OFF, ids=repr)
def test_off_the_function_is_the_very_object(
    source: bytes, era: str, dump_on: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DUMP_ON", raising=False)
    if dump_on is not None:
        monkeypatch.setenv("DUMP_ON", dump_on)
    module: dict[str, object] = {}
    exec(prelude_of(patched(source)), module)
    decorate = module["_probe_patch_rollout"]
    assert callable(decorate)
    assert decorate(untouched) is untouched
    assert module["_probe_patch"] is None


@each_era
@pytest.mark.parametrize("dump_on", WRONG)
def test_anything_else_stops_the_process_and_names_the_variable(source: bytes, era: str, dump_on: str) -> None:
    with pytest.raises(ValueError, match=r"^DUMP_ON is ") as caught:
        run(patched(source), era, dump_on)
    assert repr(dump_on) in str(caught.value)
    for spelling in ("1, true, yes or on", "0, false, no or off"):
        assert spelling in str(caught.value)


@each_era
def test_on_without_probe_patch_the_process_stops_with_what_to_do(source: bytes, era: str, tmp_path: Path) -> None:
    """An interpreter without its site-packages: torch is not there either, but the gate comes first."""
    actor = tmp_path / "actor.py"
    actor.write_bytes(patched(source))
    bare = [sys.executable, "-I", "-S", str(actor)]
    stopped = subprocess.run(bare, env={**os.environ, "DUMP_ON": "1"}, capture_output=True, text=True, check=False)
    assert stopped.returncode == 1
    last = stopped.stderr.strip().splitlines()[-1]
    assert last == (
        "ImportError: DUMP_ON is on, but probe-patch cannot be imported here (No module named 'probe_patch'): "
        "install it in this environment on every node, or unset DUMP_ON"
    )
    off = subprocess.run(bare, env={**os.environ, "DUMP_ON": "0"}, capture_output=True, text=True, check=False)
    assert off.stderr.strip().splitlines()[-1] == "ModuleNotFoundError: No module named 'torch'"
