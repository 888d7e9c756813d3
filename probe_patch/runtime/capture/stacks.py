"""Call stacks of entries, in the text and the grouping of stack.json."""

import linecache
import os
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Final, TypeAlias

_Site: TypeAlias = tuple[int, int]

_OWN_FOLDER: Final = f"{Path(__file__).parent.parent}{os.sep}"


class CallStacks:
    """Stacks seen so far. A stack met again costs one walk over its frames and no text."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, ...], list[str]] = {}
        self._known: dict[tuple[_Site, ...], list[str]] = {}
        self._texts: dict[_Site, str | None] = {}
        # Sites are known by the identity of their code, which must therefore stay alive.
        self._codes: dict[int, CodeType] = {}

    def add(self, entry: str) -> None:
        """Record the caller's stack, innermost frame first and without our own frames, for ``entry``."""
        frames = tuple(_outer_frames(sys._getframe(1)))
        sites = tuple((id(frame.f_code), frame.f_lasti) for frame in frames)
        entries = self._known.get(sites)
        if entries is None:
            texts = tuple(text for site, frame in zip(sites, frames, strict=True) if (text := self._text(site, frame)))
            entries = self._known[sites] = self._groups.setdefault(texts, [])
        entries.append(entry)

    def drop(self, entries: Collection[str]) -> None:
        """Forget these entries."""
        for group in self._groups.values():
            group[:] = [entry for entry in group if entry not in entries]

    def groups(self) -> Iterator[tuple[list[str], tuple[str, ...]]]:
        """The entries that share a stack, and the stack's frames as text."""
        for texts, entries in self._groups.items():
            if entries:
                yield entries, texts

    def _text(self, site: _Site, frame: FrameType) -> str | None:
        if site not in self._texts:
            self._codes[site[0]] = frame.f_code
            self._texts[site] = _frame_text(frame)
        return self._texts[site]


def _outer_frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_OWN_FOLDER):
            yield frame
        frame = frame.f_back


def _frame_text(frame: FrameType) -> str | None:
    """One frame of stack.json; None when its source line cannot be found, as msProbe leaves those out."""
    code = frame.f_code
    line = linecache.getline(code.co_filename, frame.f_lineno, frame.f_globals).strip()
    if not line:
        return None
    return f"File {code.co_filename}, line {frame.f_lineno}, in {code.co_name}, \n {line}"
