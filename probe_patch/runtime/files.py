"""Whole files, seen by readers either as they were or as they are."""

import os
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Final

_AT_A_TIME: Final = 1000


def write_atomically(path: Path, pieces: Iterable[str] | bytes) -> None:
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
                left = iter(pieces)
                while some := list(islice(left, _AT_A_TIME)):
                    file.write("".join(some).encode())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
