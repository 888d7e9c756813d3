"""What the build of the hot modules leaves beside them, and whether it is from the sources that are there now.

A module with a ``.pxd`` beside it is compiled when the package is installed, into the same folder, where Python prefers
it; and so is a ``.pyx``, of which there is nothing where it is not compiled. The build has this module as well, and
nothing else of the package.
"""

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Final

SUFFIX: Final = EXTENSION_SUFFIXES[0]
"""Of what is compiled for this Python, and for no other."""

STAMP: Final = f"probe_patch/runtime/built{SUFFIX}.json"
"""Where a build leaves its stamp, below the folder that the package is in; each Python has its own."""


@dataclass(frozen=True)
class Stamp:
    """What a build was made from.

    Attributes:
        modules: what is compiled, as paths without suffixes below the folder that the package is in, with slashes.
        sources: a hash of their ``.py``, ``.pyx`` and ``.pxd``.
        builder: a hash of what compiled them.
    """

    modules: tuple[str, ...]
    sources: str
    builder: str

    def text(self) -> str:
        """As it stands in the file."""
        return json.dumps(asdict(self), indent=1) + "\n"


def read_stamp(folder: Path) -> Stamp | None:
    """The stamp of the build in this folder; None where there is none that can be read."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        read = json.loads((folder / STAMP).read_bytes())
        return Stamp(tuple(read["modules"]), read["sources"], read["builder"])
    return None


def modules_with_declarations(folder: Path) -> tuple[str, ...]:
    """What is to be compiled, as ``Stamp.modules``."""
    package = folder / "probe_patch"
    found = {path.relative_to(folder).with_suffix("") for kind in ("*.pxd", "*.pyx") for path in package.rglob(kind)}
    return tuple(sorted(path.as_posix() for path in found))


def source_of(folder: Path, module: str) -> Path:
    """What a module is compiled from, besides a ``.pxd``."""
    pyx = folder / f"{module}.pyx"
    return pyx if pyx.exists() else folder / f"{module}.py"


def hash_of_sources(folder: Path, modules: Iterable[str]) -> str:
    """Of the names and contents of the files that these modules are compiled from.

    Raises:
        OSError: one of them cannot be read.
    """
    found = sha256()
    for module in modules:
        source = source_of(folder, module)
        for file in (source, *([pxd] if (pxd := source.with_suffix(".pxd")).exists() else [])):
            content = file.read_bytes()
            found.update(f"{module}{file.suffix} {len(content)}\n".encode())
            found.update(content)
    return found.hexdigest()


def is_whole(folder: Path, stamp: Stamp) -> bool:
    """Whether all that the stamp tells of is there, compiled and as the source that it was compiled from."""
    try:
        are_there = all((folder / f"{module}{SUFFIX}").is_file() for module in stamp.modules)
        return are_there and hash_of_sources(folder, stamp.modules) == stamp.sources
    except OSError:
        return False
