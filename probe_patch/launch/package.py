"""Where an SGLang is: in a tree that the user named, in the current directory, or what an interpreter would import."""

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from probe_patch.errors import Refused, SystemFailed

_MARK = Path("srt", "server_args.py")  # in every version's package folder
_PLACES = (".", "sglang", "python/sglang", "src/sglang", "python")


def package_in(tree: Path) -> Path:
    """The package folder ``sglang`` of a checkout, a site-packages folder, the folder itself, or anything in it.

    Raises:
        SystemFailed: the tree does not exist.
        Refused: it holds no SGLang.
    """
    if not tree.exists():
        raise SystemFailed(f"{tree}: no such file or folder; check the path")
    for folder in _in_tree(tree):
        return folder
    raise Refused(f"{tree}: holds no SGLang (no {_MARK}); name its checkout, its package folder or site-packages")


def package_among(folders: Iterable[Path], whose: str) -> Path:
    """The package folder of the current directory, or else the first of ``folders`` that is one.

    Args:
        folders: what an interpreter would import as ``sglang``.
        whose: what messages call that interpreter.

    Raises:
        Refused: there is none.
    """
    for folder in (*_in_tree(Path()), *_packages(folders)):
        return folder
    raise Refused(
        f"no SGLang in {Path.cwd()}, and {whose} imports none: name its checkout or site-packages, "
        "its interpreter with --python, or its version with --sglang-version"
    )


def _in_tree(tree: Path) -> Iterator[Path]:
    yield from _packages(tree / place for place in _PLACES)
    yield from _packages(tree.absolute().parents)


def _packages(folders: Iterable[Path]) -> Iterator[Path]:
    for folder in folders:
        with contextlib.suppress(OSError):
            if (folder / _MARK).is_file():
                yield folder
