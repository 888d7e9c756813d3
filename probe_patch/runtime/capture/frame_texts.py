"""Frames in the text of stack.json, made once per instruction and process."""

from __future__ import annotations

import linecache
from functools import partial
from typing import TYPE_CHECKING, Final
from weakref import ref

from probe_patch.runtime.capture.frames import OWN_FOLDER

if TYPE_CHECKING:
    from types import CodeType, FrameType

# By the identity of their code, for as long as that lives, and by instruction.
_texts: Final[dict[int, dict[int, str | None]]] = {}
_codes: Final[dict[int, ref[CodeType]]] = {}


def frame_text(frame: FrameType) -> str | None:
    """The text of what a frame runs now; None of our own code, and where there is no source line, which msProbe leaves
    out as well."""
    code, instruction = frame.f_code, frame.f_lasti
    known = _texts.get(id(code))
    if known is None:
        known = _texts[id(code)] = {}
        # What comes after the code may take its identity.
        _codes[id(code)] = ref(code, partial(_forget, id(code)))
    if instruction not in known:
        known[instruction] = None if code.co_filename.startswith(OWN_FOLDER) else _text(frame)
    return known[instruction]


def _text(frame: FrameType) -> str | None:
    code = frame.f_code
    line = linecache.getline(code.co_filename, frame.f_lineno, frame.f_globals).strip()
    if not line:
        return None
    return f"File {code.co_filename}, line {frame.f_lineno}, in {code.co_name}, \n {line}"


def _forget(identity: int, _: object) -> None:
    _texts.pop(identity, None)
    _codes.pop(identity, None)
