"""``DUMP_ON`` in a patched model_runner.py: the same gate as in slime's actor, before anything else is imported."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from probe_patch.patcher.request import Request
from probe_patch.patcher.rewrite import apply
from tests.harness.model_runner import FILE_NAME, load_model_runner
from tests.patcher.sglang.small_runner import SMALL_RUNNER, STAND_INS
from tests.patcher.small_actor import SMALL_ACTOR

PATCHED = apply(SMALL_RUNNER.encode(), Request(), FILE_NAME).source


@pytest.mark.parametrize("dump_on", ["1", "true", " YES ", "On"])
def test_on(dump_on: str) -> None:
    assert load_model_runner(PATCHED, dump_on, STAND_INS).probe is not None


@pytest.mark.parametrize("dump_on", [None, "", "0", "false", " NO ", "Off"])
def test_off(dump_on: str | None) -> None:
    assert load_model_runner(PATCHED, dump_on, STAND_INS).probe is None


@pytest.mark.parametrize("dump_on", ["2", "ja", "1x"])
def test_anything_else_stops_the_process_and_names_the_variable(dump_on: str) -> None:
    with pytest.raises(ValueError, match=r"^DUMP_ON is .*: set it to 1, true, yes or on to dump"):
        load_model_runner(PATCHED, dump_on, STAND_INS)


def test_on_without_probe_patch_the_process_stops_with_what_to_do(tmp_path: Path) -> None:
    """An interpreter without its site-packages: SGLang is not there either, but the gate comes first."""
    file = tmp_path / FILE_NAME
    file.write_bytes(PATCHED)
    last_lines = {}
    for dump_on in ("1", "0"):
        bare = [sys.executable, "-I", "-S", str(file)]
        stopped = subprocess.run(bare, env={**os.environ, "DUMP_ON": dump_on}, capture_output=True, text=True)
        assert stopped.returncode == 1
        last_lines[dump_on] = stopped.stderr.strip().splitlines()[-1]
    assert last_lines == {
        "1": "ImportError: DUMP_ON is on, but probe-patch cannot be imported here (No module named 'probe_patch'): "
        "install it in this environment on every node, or unset DUMP_ON",
        "0": "ModuleNotFoundError: No module named 'sglang'",
    }


def gate_of(source: str, name: str) -> list[str]:
    lines = apply(source.encode(), Request(), name).source.decode().splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("# >>> probe-patch prelude"))
    end = next(number for number, line in enumerate(lines) if line.startswith("_probe_patch = "))
    return lines[begin + 1 : end]


def test_it_differs_from_slimes_in_one_import() -> None:
    ours, slimes = gate_of(SMALL_RUNNER, FILE_NAME), gate_of(SMALL_ACTOR, "actor.py")
    assert [pair for pair in zip(ours, slimes, strict=True) if pair[0] != pair[1]] == [
        (
            "        from probe_patch.runtime.sglang import Probe as _ProbePatch",
            "        from probe_patch.runtime.slime import Probe as _ProbePatch",
        )
    ]
