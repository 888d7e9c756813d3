"""The small hand-written slime trees that come with the package, laid out like a checkout.

A tree is what all eras share (the folder ``support``) with one era's files laid over it. The shared package uses
relative imports only, so that it serves as ``slime`` and, for the fork, as ``miles``.
"""

import shutil
from pathlib import Path
from typing import Final

from probe_patch.errors import WrongUsage
from probe_patch.resources import data_folder

ERAS: Final[tuple[str, ...]] = ("E3", "E5", "E7", "E10", "E12", "E14", "E15", "miles")
"""The eras of slime's actor there is a tree for, oldest first, then the fork radixark/miles."""

_PACKAGE_NAMES: Final[dict[str, str]] = {era: "miles" if era == "miles" else "slime" for era in ERAS}


def package_name(era: str) -> str:
    """The name of the package in the era's tree.

    Raises:
        WrongUsage: there is no such era.
    """
    if era not in _PACKAGE_NAMES:
        raise WrongUsage(f"there is no example tree for era {era!r}; the eras are {', '.join(ERAS)}")
    return _PACKAGE_NAMES[era]


def actor_file(era: str) -> Path:
    """Where the training actor is, relative to the era's tree.

    Raises:
        WrongUsage: there is no such era.
    """
    return Path(package_name(era), "backends", "megatron_utils", "actor.py")


def lay_out(era: str, destination: Path) -> Path:
    """Write the era's tree into ``destination``, which is made if need be, and return it.

    ``python train.py`` runs it from there; ``actor_file(era)`` is what gets patched.

    Raises:
        WrongUsage: there is no such era, or ``destination`` holds something already.
        FileNotFoundError: the installation is incomplete.
    """
    package = package_name(era)
    if destination.exists() and (not destination.is_dir() or any(destination.iterdir())):
        raise WrongUsage(f"{destination} is not an empty folder; name one that is, or one that does not exist yet")
    trees = data_folder("fixtures") / "slime"
    _copy(trees / "support" / "package", destination / package)
    shutil.copyfile(trees / "support" / "train.py", destination / "train.py")
    _copy(trees / era, destination)
    return destination


def _copy(source: Path, destination: Path) -> None:
    shutil.copytree(source, destination, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
