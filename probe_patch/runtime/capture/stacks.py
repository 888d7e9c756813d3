"""Call stacks of entries, in the text and the grouping of stack.json."""

from __future__ import annotations

import linecache
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, FrameType

    from probe_patch.runtime.capture.nesting import Call

_Site: TypeAlias = "tuple[int, int]"

_OWN_FOLDER: Final = f"{Path(__file__).parent.parent}{os.sep}"


class CallStacks:
    """Stacks seen so far. A stack met again costs one walk over its frames and no text."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, ...], list[Call]] = {}
        self._known: dict[tuple[int, ...], list[Call]] = {}
        self._texts: dict[_Site, str | None] = {}
        # Sites are known by the identity of their code, which must therefore stay alive.
        self._codes: dict[int, CodeType] = {}

    def add(self, call: Call) -> None:
        """Record the caller's stack, innermost frame first and without our own frames, for ``call``."""
        frame: FrameType | None = sys._getframe(1)
        sites: list[int] = []
        while frame is not None:
            sites.append(id(frame.f_code))
            sites.append(frame.f_lasti)
            frame = frame.f_back
        key = tuple(sites)
        calls = self._known.get(key)
        if calls is None:
            calls = self._known[key] = self._group(sys._getframe(1))
        calls.append(call)

    def groups(self) -> Iterator[tuple[list[Call], tuple[str, ...]]]:
        """The calls that share a stack, and the stack's frames as text."""
        for texts, calls in self._groups.items():
            yield calls, texts

    def _group(self, frame: FrameType | None) -> list[Call]:
        texts: list[str] = []
        while frame is not None:
            site = (id(frame.f_code), frame.f_lasti)
            if site not in self._texts:
                self._codes[site[0]] = frame.f_code
                is_ours = frame.f_code.co_filename.startswith(_OWN_FOLDER)
                self._texts[site] = None if is_ours else _frame_text(frame)
            text = self._texts[site]
            if text is not None:
                texts.append(text)
            frame = frame.f_back
        return self._groups.setdefault(tuple(texts), [])


def _frame_text(frame: FrameType) -> str | None:
    """One frame of stack.json; None when its source line cannot be found, as msProbe leaves those out."""
    code = frame.f_code
    line = linecache.getline(code.co_filename, frame.f_lineno, frame.f_globals).strip()
    if not line:
        return None
    return f"File {code.co_filename}, line {frame.f_lineno}, in {code.co_name}, \n {line}"
