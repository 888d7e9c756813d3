"""The frames of the code that we are called from."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import FrameType

OWN_FOLDER: Final = f"{Path(__file__).parent.parent}{os.sep}"

_is_own: Final[dict[str, bool]] = {}
"""Of the files that frames were met in."""


def outside() -> FrameType:
    """The innermost frame that is not of our own code, which has none where it is compiled.

    Raises:
        ValueError: no Python code is running on this thread.
    """
    frame = sys._getframe()
    while True:
        file = frame.f_code.co_filename
        is_own = _is_own.get(file)
        if is_own is None:
            is_own = _is_own[file] = file.startswith(OWN_FOLDER)
        around = frame.f_back
        if not is_own or around is None:
            return frame
        frame = around
