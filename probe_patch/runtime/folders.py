"""The folder of one step, with nothing of an earlier run left in it."""

import os
import shutil
from pathlib import Path
from typing import Final

from probe_patch.dump_format import (
    CONSTRUCT_FILE,
    DUMP_FILE,
    INPUTS_FILE,
    META_FILE,
    STACK_FILE,
    TENSOR_FOLDER,
    step_folder,
)
from probe_patch.runtime.claims import Claim
from probe_patch.runtime.log import LOGGER

REPLACED_FOLDER: Final = "replaced"

_OUR_FILES: Final = (DUMP_FILE, STACK_FILE, CONSTRUCT_FILE, META_FILE, INPUTS_FILE)


def open_step(claim: Claim, step: int) -> Path:
    """The claimed folder of one step, made empty: what an earlier run left there is moved aside.

    It goes to ``{dump_path}/replaced/step{N}-{name}-{k}``, with the first free k from 1.

    Raises:
        OSError: it cannot be made, or neither moved nor emptied.
    """
    folder = claim.dump_path / step_folder(step) / claim.name
    if folder.is_dir() and any(folder.iterdir()):
        _clear(folder, claim.dump_path / REPLACED_FOLDER, f"{step_folder(step)}-{claim.name}")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _clear(folder: Path, replaced: Path, name: str) -> None:
    try:
        kept = _move_aside(folder, replaced, name)
    except OSError as error:
        LOGGER.warning(
            "probe-patch: %s holds the dump of an earlier run, which is replaced: moving it failed (%s)",
            folder,
            error.strerror,
        )
        _empty(folder)
    else:
        LOGGER.warning("probe-patch: %s held the dump of an earlier run, which is now %s", folder, kept)


def _move_aside(folder: Path, replaced: Path, name: str) -> Path:
    replaced.mkdir(exist_ok=True)
    number = 1
    while os.path.lexists(replaced / f"{name}-{number}"):
        number += 1
    kept = replaced / f"{name}-{number}"
    folder.rename(kept)
    return kept


def _empty(folder: Path) -> None:
    for name in _OUR_FILES:
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / TENSOR_FOLDER, ignore_errors=True)
