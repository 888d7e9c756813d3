"""Reads versions of the actor out of a clone of THUDM/slime."""

import functools
import subprocess
from pathlib import Path

CLONE_OPTION = "--slime-clone"


@functools.cache
def read_blob(clone: Path, blob: str) -> bytes:
    """The content of one git blob.

    Raises:
        LookupError: the clone does not hold it.
    """
    answer = subprocess.run(["git", "-C", str(clone), "cat-file", "blob", blob], capture_output=True, check=False)
    if answer.returncode:
        reason = answer.stderr.decode(errors="replace").strip()
        raise LookupError(
            f"{clone} has no blob {blob} ({reason}); {CLONE_OPTION} needs a full clone of THUDM/slime, up to date"
        )
    return answer.stdout
