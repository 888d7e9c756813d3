"""Every release of SGLang from 0.2.0 to 0.5.23, as wheels that tests read model_runner.py from.

``sglang_wheels.txt`` lists them in order: the wheel's file, and its sha256.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from packaging.version import Version

from tests.harness.wheels import PinnedWheel, names_in_wheel, read_from_wheel

MATRIX_OPTION = "--sglang-matrix"

FIRST_NATIVE: Final = Version("0.5.11")
_MOVED_IN: Final = Version("0.2.7")
_SAYS_ITS_VERSION: Final = re.compile(r"sglang/_?version\.py|sglang-[^/]+\.dist-info/METADATA")
_SAYS_ITS_FLAGS: Final = re.compile(r"sglang/srt/(server_args|arg_groups/.+)\.py")

# One of each body that forward has had, both places of the file, and the first and last releases of each kind.
SPREAD: Final = frozenset(
    [
        "0.2.0",
        "0.2.6",
        "0.2.7",
        "0.2.15",
        "0.3.1",
        "0.3.4",
        "0.4.0",
        "0.4.1.post5",
        "0.4.4",
        "0.4.6.post2",
        "0.4.6.post4",
        "0.4.6.post5",
        "0.4.9",
        "0.5.3",
        "0.5.7",
        "0.5.9",
        "0.5.10.post1",
        "0.5.11",
        "0.5.15.post1",
        "0.5.23",
    ]
)


@dataclass(frozen=True)
class Release:
    """One release.

    Attributes:
        version: as its wheel spells it.
        wheel: where its files come from.
    """

    version: str
    wheel: PinnedWheel

    @property
    def native(self) -> bool:
        """Whether it carries a dump hook of its own."""
        return Version(self.version) >= FIRST_NATIVE

    @property
    def file(self) -> str:
        """Where in the wheel model_runner.py is."""
        folder = "model_executor" if Version(self.version) >= _MOVED_IN else "managers/controller"
        return f"sglang/srt/{folder}/model_runner.py"

    def source(self) -> bytes:
        return read_from_wheel(self.wheel, self.file)

    def lay_out(self, site_packages: Path) -> Path:
        """Put model_runner.py, and the files that say the version and its flags, where an installation has them.

        Returns:
            the path of model_runner.py.
        """
        for name in names_in_wheel(self.wheel):
            if name == self.file or _SAYS_ITS_VERSION.fullmatch(name) or _SAYS_ITS_FLAGS.fullmatch(name):
                path = site_packages / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(read_from_wheel(self.wheel, name))
        return site_packages / self.file


def releases(everything: bool) -> tuple[Release, ...]:
    """The spread, or every release, in order."""
    lines = (Path(__file__).parent / "sglang_wheels.txt").read_text(encoding="ascii").splitlines()
    found = tuple(_release(*line.split()) for line in lines)
    return found if everything else tuple(release for release in found if release.version in SPREAD)


def release(version: str) -> Release:
    """One release.

    Raises:
        LookupError: there is none of this version.
    """
    for candidate in releases(everything=True):
        if candidate.version == version:
            return candidate
    raise LookupError(version)


def _release(file_name: str, sha256: str) -> Release:
    version = file_name.split("-")[1]
    return Release(version, PinnedWheel(f"sglang=={version}", file_name, sha256))
