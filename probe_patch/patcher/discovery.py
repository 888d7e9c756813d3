"""Which files a command is about, found without importing any of them.

A tree may be a checkout, a site-packages folder, a package folder or the file itself. Without one, it is the current
directory and whatever the chosen interpreter would import.
"""

import contextlib
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
    "print(); "  # an interpreter may have printed half a line before
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
        WrongUsage: both trees and an interpreter, or one that does not answer.
        SystemFailed: a tree does not exist or cannot be read.
        Refused: a tree holds nothing that can be patched, or only versions that are not supported.
    """
    if trees and python is not None:
        raise WrongUsage("--python finds slime where no TREE is named; leave one of them out")
    try:
        found = [target for tree in trees for target in _in_tree(tree)] if trees else _in_reach(python)
    except OSError as error:
        what = error.filename or "the current directory"
        raise SystemFailed(f"{what}: cannot be looked at ({error.strerror})") from None
    return tuple(_without_repeats(found))


def _in_reach(python: str | None) -> list[Target]:
    """What there is without a tree named: the current directory's, and the interpreter's."""
    here, packages = Path(), _importable(python)
    found = [*_anywhere_in(here), *(target for package in packages for target in _in_package(package))]
    if not found:
        unsupported = [refusal for tree in (here, *packages) if (refusal := _unsupported_in(tree)) is not None]
        raise (
            unsupported[0]
            if unsupported
            else Refused(
                f"no slime or miles in {Path.cwd()}, and {python or 'this Python'} imports none: "
                "name the checkout, site-packages or actor.py, or the interpreter with --python"
            )
        )
    return found


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
    found = _anywhere_in(tree)
    if not found:
        raise _unsupported_in(tree) or Refused(
            f"{tree}: holds no slime/{ACTOR} and no miles/{ACTOR}; "
            "name slime's checkout, its package folder or the file itself"
        )
    return found


def _anywhere_in(folder: Path) -> list[Target]:
    return [*_in_folder(folder), *_in_package(folder)] or list(_inside_package(folder))


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


def _unsupported_in(tree: Path) -> Refused | None:
    """Why a slime that is there has nothing to patch."""
    for package in [tree, *(root / name for root in (tree, tree / "src") for name in PACKAGES)]:
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
    return None


def _importable(python: str | None) -> list[Path]:
    """The package folders that an interpreter would import."""
    if python is None:
        specs = [importlib.util.find_spec(name) for name in PACKAGES]
        return [Path(folder) for spec in specs if spec for folder in spec.submodule_search_locations or ()]
    command = [python, "-c", _FIND_PACKAGES, *PACKAGES]
    try:
        answer = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=60, check=True
        )
    except subprocess.TimeoutExpired:
        raise _no_answer(python, "it did not answer within a minute") from None
    except subprocess.CalledProcessError as error:
        raise _no_answer(python, (error.stderr.strip() or str(error)).splitlines()[-1]) from None
    except OSError as error:
        raise _no_answer(python, error.strerror or str(error)) from None
    folders = _last_list(answer.stdout)
    if folders is None:
        raise _no_answer(python, "it printed no list of folders; is it a Python interpreter?")
    return [Path(folder) for folder in folders]


def _last_list(printed: str) -> list[str] | None:
    """The last line that is a list of strings: interpreters may print around it as they start and end."""
    for line in reversed(printed.splitlines()):
        with contextlib.suppress(ValueError):
            answer = json.loads(line)
            if isinstance(answer, list) and all(isinstance(item, str) for item in answer):
                return answer
    return None


def _no_answer(python: str, reason: str) -> WrongUsage:
    return WrongUsage(f"--python {python}: cannot be asked what it imports ({reason})")


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
