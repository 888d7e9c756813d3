"""The pinned wheel: downloaded once, kept whole, and missed loudly in CI."""

import hashlib
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from tests.harness.wheels import MILES, PinnedWheel, WheelUnavailable, fetch_wheel, read_from_wheel


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PinnedWheel:
    """A wheel that pip finds in a folder, with every index out of reach."""
    folder = tmp_path / "index"
    folder.mkdir()
    path = folder / "tiny_actor-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tiny/actor.py", "pass\n")
        archive.writestr("tiny_actor-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-actor\nVersion: 1.0\n")
        archive.writestr(
            "tiny_actor-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("tiny_actor-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return PinnedWheel("tiny-actor==1.0", path.name, hashlib.sha256(path.read_bytes()).hexdigest())


def test_it_is_downloaded_once_and_read_without_being_installed(
    wheel: PinnedWheel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read_from_wheel(wheel, "tiny/actor.py") == b"pass\n"
    kept = tmp_path / "cache" / "probe-patch-tests" / wheel.file_name
    assert list(kept.parent.iterdir()) == [kept]

    monkeypatch.delenv("PIP_FIND_LINKS")
    assert fetch_wheel(wheel, kept.parent) == kept


def test_a_damaged_file_in_the_cache_is_replaced(wheel: PinnedWheel, tmp_path: Path) -> None:
    (tmp_path / wheel.file_name).write_bytes(b"half a wheel")

    assert hashlib.sha256(fetch_wheel(wheel, tmp_path).read_bytes()).hexdigest() == wheel.sha256


def test_another_wheel_than_the_pinned_one_is_refused_and_not_kept(wheel: PinnedWheel, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"tiny-actor==1\.0.*sha256 differs"):
        fetch_wheel(replace(wheel, sha256="0" * 64), tmp_path / "kept")

    assert list((tmp_path / "kept").iterdir()) == []


@pytest.mark.parametrize(("ci", "outcome"), [(None, "Skipped"), ("true", "Failed")])
def test_without_the_wheel_a_test_is_skipped_but_fails_in_ci(
    ci: str | None, outcome: str, wheel: PinnedWheel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    if ci is not None:
        monkeypatch.setenv("CI", ci)

    with pytest.raises(BaseException, match="pip cannot download miles-rl") as caught:
        read_from_wheel(replace(MILES, sha256="0" * 64), "any")

    assert type(caught.value).__name__ == outcome


def test_what_cannot_be_had_is_named(wheel: PinnedWheel, tmp_path: Path) -> None:
    with pytest.raises(WheelUnavailable, match=r"pip cannot download tiny-actor==2\.0: .*No matching distribution"):
        fetch_wheel(replace(wheel, requirement="tiny-actor==2.0"), tmp_path)
