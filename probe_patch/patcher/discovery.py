"""Which files a command is about, found without importing any of them.

A tree may be a checkout, a site-packages folder, a package folder or the file itself. Without one, it is the current
directory and whatever the chosen interpreter would import.
"""

import importlib.util
import json
import os
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from probe_patch.errors import Refused, SystemFailed, WrongUsage

PACKAGES = ("slime", "miles")
ACTOR = PurePosixPath("backends/megatron_utils/actor.py")
_FSDP_ACTOR = PurePosixPath("backends/fsdp_utils/actor.py")
_EARLY_ACTOR = PurePosixPath("ray/ppo_actor.py")

_FIND_PACKAGES = (
    "import importlib.util, json, sys; "
    "specs = [importlib.util.find_spec(name) for name in sys.argv[1:]]; "
    "print(json.dumps([p for s in specs if s and s.submodule_search_locations for p in s.submodule_search_locations]))"
)


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
        SystemFailed: a tree does not exist or cannot be read.
        Refused: a tree holds nothing that can be patched, or only versions that are not supported.
    """
    if trees:
        found = [target for tree in trees for target in _in_tree(tree)]
    else:
        found = [*_in_folder(Path()), *(target for folder in _importable(python) for target in _in_package(folder))]
        if not found:
            raise Refused(
                f"no slime or miles in {Path.cwd()}, and {python or 'this Python'} imports none: "
                "name the checkout, site-packages or actor.py, or the interpreter with --python"
            )
    return tuple(_without_repeats(found))


def _in_tree(tree: Path) -> list[Target]:
    if not tree.exists():
        raise SystemFailed(f"{tree}: no such file or folder; check the path")
    if tree.is_file():
        if tree.suffix != ".py":
            raise Refused(f"{tree}: not a Python file; name slime's checkout or its {ACTOR}")
        return [_target(tree, ())]
    if not tree.is_dir():
        raise Refused(f"{tree}: neither a file nor a folder; name slime's checkout or its {ACTOR}")
    if not os.access(tree, os.R_OK | os.X_OK):
        raise SystemFailed(f"{tree}: cannot be read (permission denied)")
    found = [*_in_folder(tree), *_in_package(tree)] or list(_inside_package(tree))
    if not found:
        raise _nothing_in(tree)
    return found


def _in_folder(folder: Path) -> Iterator[Target]:
    """Packages that stand in a checkout or a site-packages folder."""
    for root in (folder, folder / "src"):
        for package in PACKAGES:
            yield from _in_package(root / package)


def _in_package(package: Path) -> Iterator[Target]:
    actor = package / ACTOR
    if actor.is_file():
        has_fsdp = (package / _FSDP_ACTOR).is_file()
        yield _target(actor, ("the FSDP backend beside it is not patched: its runs do not dump",) if has_fsdp else ())


def _inside_package(folder: Path) -> Iterator[Target]:
    """A folder somewhere on the way from the package to the file: ``backends`` or ``megatron_utils``."""
    parts = ACTOR.parts
    for depth in range(1, len(parts)):
        if folder.resolve().name == parts[depth - 1] and (actor := folder.joinpath(*parts[depth:])).is_file():
            yield _target(actor, ())


def _nothing_in(tree: Path) -> Refused:
    for package in [tree, *(tree / name for name in PACKAGES)]:
        if (package / _EARLY_ACTOR).is_file():
            return Refused(
                f"{package / _EARLY_ACTOR}: this is slime from before 2025-07-18, which probe-patch does not know; "
                "use slime v0.1.0 or later"
            )
        if (package / _FSDP_ACTOR).is_file():
            return Refused(
                f"{package / _FSDP_ACTOR}: this slime has only the FSDP backend; probe-patch patches the Megatron one "
                f"({ACTOR})"
            )
    return Refused(
        f"{tree}: holds no slime/{ACTOR} and no miles/{ACTOR}; "
        "name slime's checkout, its package folder or the file itself"
    )


def _importable(python: str | None) -> list[Path]:
    """The package folders that an interpreter would import."""
    if python is None:
        specs = [importlib.util.find_spec(name) for name in PACKAGES]
        return [Path(folder) for spec in specs if spec for folder in spec.submodule_search_locations or ()]
    command = [python, "-c", _FIND_PACKAGES, *PACKAGES]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        return [Path(folder) for folder in json.loads(answer.stdout.splitlines()[-1])]
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        detail = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
        raise WrongUsage(
            f"--python {python}: cannot be asked what it imports ({detail[-1] if detail else error})"
        ) from None


def _target(path: Path, notes: tuple[str, ...]) -> Target:
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise SystemFailed(f"{path}: cannot be resolved ({error})") from None
    if path.is_symlink():
        notes = (*notes, f"is a symbolic link; the file patched is {real}")
    return Target(real, str(path), notes)


def _without_repeats(targets: Iterable[Target]) -> Iterator[Target]:
    seen: set[Path] = set()
    for target in targets:
        if target.path not in seen:
            seen.add(target.path)
            yield target
