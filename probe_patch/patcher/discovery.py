"""Which files a command is about, found without importing any of them.

A tree may be a checkout, a site-packages folder, a package folder or the file itself. Without one, it is the current
directory and whatever the chosen interpreter would import.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from probe_patch.errors import Refused, SystemFailed, WrongUsage
from probe_patch.patcher.interpreter import importable
from probe_patch.patcher.targets.places import Places
from probe_patch.patcher.targets.sglang.places import SGLANG_PLACES
from probe_patch.patcher.targets.slime.places import SLIME_PLACES

_ALL_PLACES: Final[tuple[Places, ...]] = (SLIME_PLACES, SGLANG_PLACES)
_PACKAGES: Final = tuple(package for places in _ALL_PLACES for package in places.packages)
_NAME_IT: Final = "name a checkout of slime or SGLang, a package folder or the file itself"


@dataclass(frozen=True)
class Target:
    """One file to work on.

    Attributes:
        path: the file itself, symbolic links resolved.
        shown: what messages call it: the path as the user would write it.
        notes: what is to be said about how it was found.
    """

    path: Path
    shown: str
    notes: tuple[str, ...] = ()


def find_targets(trees: Sequence[Path], python: str | None = None) -> tuple[Target, ...]:
    """The files of ``trees``, or of the current directory and the interpreter's packages where there are none.

    Args:
        trees: what the user named.
        python: another interpreter to ask for what it would import; None asks this one.

    Raises:
        WrongUsage: both trees and an interpreter, or one that does not answer.
        SystemFailed: a tree does not exist or cannot be read.
        Refused: a tree holds nothing that can be patched, or only versions that are not supported.
    """
    if trees and python is not None:
        raise WrongUsage("--python finds slime and SGLang where no TREE is named; leave one of them out")
    try:
        found = [target for tree in trees for target in _in_tree(tree)] if trees else _in_reach(python)
    except OSError as error:
        what = error.filename or "the current directory"
        raise SystemFailed(f"{what}: cannot be looked at ({error.strerror})") from None
    return tuple(_without_repeats(found))


def _in_reach(python: str | None) -> list[Target]:
    """What there is without a tree named: the current directory's, and the interpreter's."""
    packages = importable(_PACKAGES, python)
    imported = [path for package in packages for places in _ALL_PLACES for path in places.find_in_package(package)]
    nothing = Refused(
        f"no {_one_of(_PACKAGES)} in {Path.cwd()}, and {python or 'this Python'} imports none: "
        "name the checkout, site-packages or the file to patch, or the interpreter with --python"
    )
    return _targets([*_files_of(Path()), *imported], [Path(), *packages], nothing)


def _in_tree(tree: Path) -> list[Target]:
    if not tree.exists():
        raise SystemFailed(f"{tree}: no such file or folder; check the path")
    if tree.is_file():
        if tree.suffix != ".py":
            raise Refused(f"{tree}: not a Python file; {_NAME_IT}")
        return [_target(tree)]
    if not tree.is_dir():
        raise Refused(f"{tree}: neither a file nor a folder; {_NAME_IT}")
    if not os.access(tree, os.R_OK | os.X_OK):
        raise SystemFailed(f"{tree}: cannot be read (permission denied)")
    files = [f"{package}/{places.files[0]}" for places in _ALL_PLACES for package in places.packages]
    return _targets(_files_of(tree), [tree], Refused(f"{tree}: holds no {_one_of(files)}; {_NAME_IT}"))


def _files_of(tree: Path) -> list[Path]:
    return [path for places in _ALL_PLACES for path in places.find(tree)]


def _targets(paths: Sequence[Path], folders: Sequence[Path], nothing: Refused) -> list[Target]:
    """What to patch. What else ``folders`` hold that cannot be patched is noted, and refused where there is no more."""
    found = [_target(path) for path in paths]
    unsupported = [each for folder in folders for places in _ALL_PLACES for each in places.unsupported(folder)]
    reasons = list({each.package: each.reason for each in reversed(unsupported)}.values())[::-1]
    if not found:
        raise Refused(reasons[0]) if reasons else nothing
    notes = (*found[0].notes, *(f"is not patched together with {reason}" for reason in reasons))
    return [replace(found[0], notes=notes), *found[1:]]


def _one_of(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _target(path: Path) -> Target:
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise SystemFailed(f"{path}: cannot be resolved ({error})") from None
    notes = tuple(note for places in _ALL_PLACES for note in places.notes(path))
    if path.is_symlink():
        notes = (*notes, f"is a symbolic link; the file patched is {real}")
    return Target(real, str(path), notes)


def _without_repeats(targets: Iterable[Target]) -> Iterator[Target]:
    seen: set[Path] = set()
    for target in targets:
        if target.path not in seen:
            seen.add(target.path)
            yield target
