"""All files or none, whatever the machine does."""

import os
import stat
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from probe_patch.errors import SystemFailed
from probe_patch.patcher import folder_lock, transaction
from probe_patch.patcher.staging import rename_over
from probe_patch.patcher.transaction import Change, commit, locked, read
from tests.needs import needs


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / name for name in ("a.py", "b.py", "c.py")]
    for path in paths:
        path.write_bytes(b"old " + path.name.encode())
    return paths


def changes(paths: list[Path]) -> list[Change]:
    return [Change(read(path), b"new " + path.name.encode()) for path in paths]


def assert_all_old(paths: list[Path]) -> None:
    assert [path.read_bytes() for path in paths] == [b"old " + path.name.encode() for path in paths]
    assert {path.name for path in paths[0].parent.iterdir()} == {path.name for path in paths}


def assert_all_new(paths: list[Path]) -> None:
    assert [path.read_bytes() for path in paths] == [b"new " + path.name.encode() for path in paths]
    assert {path.name for path in paths[0].parent.iterdir()} == {path.name for path in paths}


def test_everything_is_written(files: list[Path]) -> None:
    commit(changes(files))
    assert_all_new(files)


def test_mode_owner_and_extended_attributes_stay(files: list[Path]) -> None:
    files[0].chmod(0o640)
    if os.geteuid() == 0:
        os.chown(files[0], 1234, 4321)
    os.setxattr(files[0], "user.note", b"kept")
    before = files[0].stat()
    commit(changes(files[:1]))
    after = files[0].stat()
    assert (stat.S_IMODE(after.st_mode), after.st_uid, after.st_gid) == (0o640, before.st_uid, before.st_gid)
    assert os.getxattr(files[0], "user.note") == b"kept"


def test_a_hard_link_elsewhere_keeps_the_old_contents(files: list[Path], tmp_path: Path) -> None:
    """Package managers link files from a cache: other environments must not be patched along."""
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "a.py").hardlink_to(files[0])
    commit(changes(files[:1]))
    assert (cache / "a.py").read_bytes() == b"old a.py"


@pytest.mark.parametrize("operation", ["stage", "rename_over", "_require_unchanged"])
@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize("failure", [SystemFailed("no space"), KeyboardInterrupt()], ids=["failure", "interrupt"])
def test_a_failure_anywhere_leaves_every_file_as_it_was(
    files: list[Path], monkeypatch: pytest.MonkeyPatch, operation: str, at: int, failure: BaseException
) -> None:
    genuine = getattr(transaction, operation)
    calls = 0

    def failing(*arguments: object) -> object:
        nonlocal calls
        calls += 1
        if calls == at:
            raise failure
        return genuine(*arguments)

    planned = changes(files)
    monkeypatch.setattr(transaction, operation, failing)
    with pytest.raises(type(failure)):
        commit(planned)
    assert_all_old(files)


def test_a_file_that_does_not_read_back_is_rolled_back(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = rename_over

    def losing(source: Path, target: Path) -> None:
        if source.name.endswith("-new") and target.name == "c.py":
            source.write_bytes(b"garbage")
        genuine(source, target)

    planned = changes(files)
    monkeypatch.setattr(transaction, "rename_over", losing)
    with pytest.raises(SystemFailed, match=r"c\.py: does not read back"):
        commit(planned)
    assert_all_old(files)


@pytest.mark.parametrize(
    "edit",
    [
        lambda path: path.write_bytes(b"edited"),
        lambda path: path.write_bytes(path.read_bytes()),
        lambda path: path.unlink(),
    ],
    ids=["other contents", "same contents, written again", "removed"],
)
def test_a_file_changed_between_plan_and_write_stops_everything(files: list[Path], edit: object) -> None:
    planned = changes(files)
    os.utime(files[1], ns=(1, 1))
    edit(files[1])  # type: ignore[operator]
    with pytest.raises(SystemFailed, match=r"b\.py: (was changed by somebody else|cannot be read|.*No such file)"):
        commit(planned)
    assert files[0].read_bytes() == b"old a.py"
    assert files[2].read_bytes() == b"old c.py"
    assert not [path for path in files[0].parent.iterdir() if path not in files]


def test_a_read_only_file_is_left_alone(files: list[Path]) -> None:
    files[1].chmod(0o444)
    with pytest.raises(SystemFailed, match=r"b\.py: is read-only \(mode 0444\); make it writable first"):
        commit(changes(files))
    assert_all_old(files)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB, which needs root to mount."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True, text=True
    )
    needs(mounted.returncode == 0, f"a tmpfs cannot be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_leaves_every_file_as_it_was(small_disk: Path) -> None:
    paths = [small_disk / "a.py", small_disk / "b.py"]
    for path in paths:
        path.write_bytes(b"old " + path.name.encode())
    planned = [Change(read(paths[0]), b"x" * 8_000), Change(read(paths[1]), b"x" * 60_000)]
    with pytest.raises(SystemFailed, match=r"cannot be written beside \(No space left on device\)"):
        commit(planned)
    assert_all_old(paths)


def test_a_read_only_file_system_is_said(small_disk: Path) -> None:
    path = small_disk / "a.py"
    path.write_bytes(b"old a.py")
    planned = changes([path])
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with pytest.raises(SystemFailed, match=r"read-only|Read-only file system"):
        commit(planned)
    assert_all_old([path])


def test_left_overs_of_a_killed_run_are_removed(files: list[Path]) -> None:
    (files[0].parent / ".a.py.probe-patch-99-new").write_bytes(b"half")
    (files[0].parent / ".a.py.probe-patch-99-old").write_bytes(b"")
    with locked(files):
        commit(changes(files))
    assert_all_new(files)


def test_two_runs_take_turns(files: list[Path]) -> None:
    order: list[str] = []
    inside, finish = threading.Event(), threading.Event()

    def first() -> None:
        with locked(files):
            inside.set()
            finish.wait(10)
            order.append("first")

    thread = threading.Thread(target=first)
    thread.start()
    assert inside.wait(10)
    threading.Timer(0.2, finish.set).start()
    with locked(files):
        order.append("second")
    thread.join()
    assert order == ["first", "second"]


def test_waiting_for_another_run_has_an_end(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_lock, "PATIENCE", 0.0)
    with (
        locked(files),
        pytest.raises(SystemFailed, match="another probe-patch has been at work here"),
        locked(files),
    ):
        pass
