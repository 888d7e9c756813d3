"""No two live processes write one folder."""

import errno
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from probe_patch.runtime.beside import locks_folder
from probe_patch.runtime.claims import claim_folder
from probe_patch.runtime.files import write_atomically
from probe_patch.runtime.folders import open_step
from probe_patch.runtime.free_ranks import claim_free_rank

HOLD = """
import sys
from collections.abc import Iterator
from pathlib import Path
from probe_patch.runtime.claims import claim_folder
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


def test_a_name_that_this_process_has_is_asked_for_again_under_names_of_their_own(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    own = f"rank0_{socket.gethostname()}_{os.getpid()}"
    claims = [claim_folder(path, "rank0") for path in (tmp_path, tmp_path / ".." / tmp_path.name, tmp_path)]
    assert [claim.name for claim in claims] == ["rank0", own, f"{own}_2"]
    assert [text.partition(" writes")[0] for text in caplog.messages] == [
        "probe-patch: another debugger of this process"
    ] * 2
    del claims[1:]
    with holder(tmp_path) as other:
        assert name_held_by(other) != "rank0"
        other.communicate()


def test_a_name_is_free_again_once_its_process_is_gone(tmp_path: Path) -> None:
    with holder(tmp_path) as other:
        assert name_held_by(other) == "rank0"
        other.kill()
    assert claim_folder(tmp_path, "rank0").name == "rank0"


def test_a_claim_holds_in_every_step(tmp_path: Path) -> None:
    claim = claim_folder(tmp_path, "rank0")
    assert [open_step(claim, step) for step in (0, 3)] == [tmp_path / "step0" / "rank0", tmp_path / "step3" / "rank0"]


def test_a_dropped_claim_can_be_taken_by_another_process(tmp_path: Path) -> None:
    claim = claim_folder(tmp_path, "rank0")
    del claim
    with holder(tmp_path) as other:
        assert name_held_by(other) == "rank0"
        other.communicate()


CLAIM_AND_FORK = """
import os, sys
from pathlib import Path
from probe_patch.runtime.claims import claim_folder
claim = claim_folder(Path(sys.argv[1]), "rank0")
child = os.fork()
if child == 0:
    sys.stdin.read()
    os._exit(0)
print(child, flush=True)
"""


def test_a_forked_child_that_outlives_the_process_does_not_hold_its_name(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CLAIM_AND_FORK, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        child = int(name_held_by(parent))
        assert parent.wait() == 0
        os.kill(child, 0)
        assert claim_folder(tmp_path, "rank0").name == "rank0"


CHILD_CLAIMS = """
import os, sys
from pathlib import Path
from probe_patch.runtime.claims import claim_folder
claim = claim_folder(Path(sys.argv[1]), "rank0")
child = os.fork()
if child == 0:
    print(claim_folder(Path(sys.argv[1]), "rank0").name == f"rank0_{os.uname().nodename}_{os.getpid()}", flush=True)
    os._exit(0)
os.waitpid(child, 0)
sys.stdin.read()
"""


def test_a_forked_child_that_records_takes_a_name_of_its_own_and_leaves_its_parents(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CHILD_CLAIMS, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert name_held_by(parent) == "True"
        assert claim_folder(tmp_path, "rank0").name != "rank0"
        parent.communicate()


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


def test_a_free_rank_is_one_that_nobody_alive_has(tmp_path: Path) -> None:
    with holder(tmp_path) as other:
        assert name_held_by(other) == "rank0"
        held = [claim_free_rank(tmp_path, first, 2) for first in (0, 1, 0)]
        assert [claim.rank for claim in held] == [2, 1, 4]
        other.communicate()
    assert claim_free_rank(tmp_path, 0, 2).rank == 0


def test_without_locks_a_rank_is_still_one_processs_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_locks(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.lockf", no_locks)
    locks_folder(tmp_path).mkdir()
    (locks_folder(tmp_path) / "rank0.taken").touch()  # by a process on another node
    claim = claim_free_rank(tmp_path, 0, 1)
    assert claim.rank == 1
    assert "cannot be locked (No locks available)" in caplog.text
    del claim
    assert claim_free_rank(tmp_path, 0, 1).rank == 1


def test_a_rank_that_another_node_took_is_no_longer_ours(tmp_path: Path) -> None:
    claim = claim_free_rank(tmp_path, 0, 1)
    assert claim.is_ours()
    (locks_folder(tmp_path) / "rank0.owner").write_text('{"host": "another"}')
    assert not claim.is_ours()
    assert claim_free_rank(tmp_path, 0, 1).rank == 1
