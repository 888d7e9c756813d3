"""Small slime trees on disk, and what is in a folder, to the byte."""

import stat
from pathlib import Path

from tests.patcher.small_actor import SMALL_ACTOR

ACTOR = "backends/megatron_utils/actor.py"
ORIGINAL = SMALL_ACTOR.encode()


def checkout(folder: Path, source: bytes = ORIGINAL, package: str = "slime") -> Path:
    """A checkout in ``folder`` with nothing but the package's actor in it; returns the actor."""
    actor = folder / package / ACTOR
    actor.parent.mkdir(parents=True)
    actor.write_bytes(source)
    return actor


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Type, mode and contents (of a link: where it points) of everything below ``folder``."""
    return {str(path.relative_to(folder)): _content(path) for path in sorted(folder.rglob("*"))}


def _content(path: Path) -> tuple[int, bytes]:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return mode, str(path.readlink()).encode()
    return mode, path.read_bytes() if stat.S_ISREG(mode) else b""
