"""No two live processes write one folder."""

import logging
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from probe_patch.runtime.files import write_atomically
from probe_patch.runtime.folders import claim_folder, open_step

HOLD = """
import sys
from collections.abc import Iterator
from pathlib import Path
from probe_patch.runtime.folders import claim_folder
claim = claim_folder(Path(sys.argv[1]), "rank0")
print(claim.name, flush=True)
sys.stdin.read()
"""


def holder(dump_path: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", HOLD, str(dump_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def name_held_by(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_second_live_process_takes_a_name_of_its_own(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    with holder(tmp_path) as other:
        assert name_held_by(other) == "rank0"
        claim = claim_folder(tmp_path, "rank0")
        assert claim.name == f"rank0_{socket.gethostname()}_{os.getpid()}"
        assert "another running process writes rank0" in caplog.text
        other.communicate()


def test_a_name_is_free_again_once_its_process_is_gone(tmp_path: Path) -> None:
    with holder(tmp_path) as other:
        assert name_held_by(other) == "rank0"
        other.kill()
    assert claim_folder(tmp_path, "rank0").name == "rank0"


def test_one_process_keeps_its_name_in_every_step_and_debugger(tmp_path: Path) -> None:
    first = claim_folder(tmp_path, "rank0")
    assert claim_folder(tmp_path, "rank0") is first
    assert [open_step(first, step) for step in (0, 3)] == [tmp_path / "step0" / "rank0", tmp_path / "step3" / "rank0"]


def test_a_dropped_claim_can_be_taken_by_another_process(tmp_path: Path) -> None:
    claim = claim_folder(tmp_path, "rank0")
    del claim
    with holder(tmp_path) as other:
        assert name_held_by(other) == "rank0"
        other.communicate()


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    write_atomically(path, ["one"])

    def until_the_disk_is_full() -> Iterator[str]:
        yield "two"
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, until_the_disk_is_full())
    assert path.read_text() == "one"
    assert list(tmp_path.iterdir()) == [path]
