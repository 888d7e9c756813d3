"""The folder of one step, with nothing of an earlier run left in it."""

import contextlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from probe_patch.dump_format import (
    CONSTRUCT_FILE,
    DEBUG_FILE,
    DUMP_FILE,
    INPUTS_FILE,
    META_FILE,
    STACK_FILE,
    TENSOR_FOLDER,
    step_folder,
)
from probe_patch.runtime.beside import replaced_folder
from probe_patch.runtime.log import LOGGER

if TYPE_CHECKING:
    from probe_patch.runtime.claims import Claim

_ATTEMPTS: Final = 10
_OUR_FILES: Final = (DUMP_FILE, STACK_FILE, CONSTRUCT_FILE, DEBUG_FILE, META_FILE, INPUTS_FILE)


def set_aside(dump_path: Path, name: str) -> None:
    """Move what earlier runs left under this name out of every step, so that runs do not mix.

    It goes to ``{replaced_folder}/step{N}-{name}-{k}``, with the first k from 1 that is free for all.

    Raises:
        OSError: it can neither be moved nor emptied.
    """
    found = sorted(folder for folder in dump_path.glob(f"step*/{name}") if folder.is_dir() and any(folder.iterdir()))
    if not found:
        return
    replaced = replaced_folder(dump_path)
    try:
        kept = _move_aside(found, replaced)
    except OSError as error:
        LOGGER.warning(
            "probe-patch: %s holds dumps of an earlier run, which are replaced: moving them failed (%s)",
            dump_path,
            error.strerror,
        )
        for folder in found:
            _empty(folder)
    else:
        for folder in found:
            with contextlib.suppress(OSError):
                folder.parent.rmdir()  # a step without ranks is none for readers
        LOGGER.warning(
            "probe-patch: %s held %d dumps of an earlier run as %s, which are now %s",
            dump_path,
            len(kept),
            name,
            kept[0] if len(kept) == 1 else f"{kept[0]} and so on",
        )


def open_step(claim: "Claim", step: int) -> Path:
    """The claimed folder of one step, made empty: what stands there is moved aside.

    Raises:
        OSError: it cannot be made, or neither moved nor emptied.
    """
    folder = claim.dump_path / step_folder(step) / claim.name
    if folder.is_dir() and any(folder.iterdir()):
        _clear(folder, replaced_folder(claim.dump_path))
    for _ in range(_ATTEMPTS):
        # Another process may just be taking the step's folder away, as it has emptied it.
        with contextlib.suppress(FileNotFoundError):
            folder.mkdir(parents=True, exist_ok=True)
            return folder
    raise FileNotFoundError(f"{folder} is taken away again and again")


def _clear(folder: Path, replaced: Path) -> None:
    try:
        (kept,) = _move_aside([folder], replaced)
    except OSError as error:
        LOGGER.warning(
            "probe-patch: %s holds the dump of an earlier run, which is replaced: moving it failed (%s)",
            folder,
            error.strerror,
        )
        _empty(folder)
    else:
        LOGGER.warning("probe-patch: %s held the dump of an earlier run, which is now %s", folder, kept)


def _move_aside(folders: Sequence[Path], replaced: Path) -> list[Path]:
    replaced.mkdir(exist_ok=True)
    names = [f"{folder.parent.name}-{folder.name}" for folder in folders]
    number = 1
    while any(os.path.lexists(replaced / f"{name}-{number}") for name in names):
        number += 1
    return [folder.rename(replaced / f"{name}-{number}") for folder, name in zip(folders, names, strict=True)]


def _empty(folder: Path) -> None:
    for name in _OUR_FILES:
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / TENSOR_FOLDER, ignore_errors=True)
