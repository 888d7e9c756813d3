"""The frames of the code that we are called from."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Hashable
    from types import FrameType

OWN_FOLDER: Final = f"{Path(__file__).parent.parent}{os.sep}"

_getframe: Final = sys._getframe

_is_own: Final[dict[str, bool]] = {}
"""Of the files that frames were met in."""


def outside() -> FrameType:
    """The innermost frame that is not of our own code, which has none where it is compiled.

    Raises:
        ValueError: no Python code is running on this thread.
    """
    frame = _getframe()
    while True:
        file = frame.f_code.co_filename
        is_own = _is_own.get(file)
        if is_own is None:
            is_own = _is_own[file] = file.startswith(OWN_FOLDER)
        around = frame.f_back
        if not is_own or around is None:
            return frame
        frame = around


def stack_key(frame: FrameType | None, outer: int, beyond: int) -> Hashable:
    """A call stack as a key of a dictionary, while all code that is met stays alive; ``stack_keys`` has it compiled.

    Args:
        outer: the identity of the frame to stop behind; 0 for none.
        beyond: stands for the frames behind that one.
    """
    sites: list[int] = []
    while frame is not None:
        sites += (id(frame.f_code), frame.f_lasti)
        if id(frame) == outer:
            sites.append(beyond)
            break
        frame = frame.f_back
    return tuple(sites)
