"""Whole files, seen by readers either as they were or as they are."""

import os
from collections.abc import Iterable
from pathlib import Path


def write_atomically(path: Path, pieces: Iterable[str | bytes | memoryview] | bytes) -> None:
    """Write a file (text as UTF-8) beside its place and rename it; after a failure the old one, if any, stands.

    Raises:
        OSError: no space, no permission.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as file:
            if isinstance(pieces, bytes):
                file.write(pieces)
            else:
                for piece in pieces:
                    file.write(piece.encode() if isinstance(piece, str) else piece)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
