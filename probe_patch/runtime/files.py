"""Whole files, seen by readers either as they were or as they are."""

import os
from collections.abc import Iterable
from pathlib import Path


def write_atomically(path: Path, pieces: Iterable[str]) -> None:
    """Write a UTF-8 file beside its place and rename it there; after a failure the old file stands, if there was one.

    Raises:
        OSError: no space, no permission.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("w", encoding="utf-8") as file:
            file.writelines(pieces)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
