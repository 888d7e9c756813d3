"""Call stacks of entries, in the text and the grouping of stack.json."""

from __future__ import annotations

import linecache
from typing import TYPE_CHECKING, TypeAlias

from probe_patch.runtime.capture.frames import OWN_FOLDER, outside

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, FrameType

    from probe_patch.runtime.capture.nesting import Call

_Site: TypeAlias = "tuple[int, int]"


class CallStacks:
    """Stacks seen so far. A stack met again costs one walk over its frames and no text."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, ...], int] = {}
        self._calls: list[list[Call]] = []
        self._known: dict[tuple[int, ...], int] = {}
        self._texts: dict[_Site, str | None] = {}
        # Sites are known by the identity of their code, which must therefore stay alive.
        self._codes: dict[int, CodeType] = {}

    def add(self, call: Call) -> None:
        """Record the caller's stack, innermost frame first and without our own frames, for ``call``.

        What is above the module around it is that module's stack, and not walked again.
        """
        around = call.parent
        outer = 0 if around is None or around.stack is None else around.frame
        frame: FrameType | None = outside()
        sites: list[int] = []
        while frame is not None:
            sites.append(id(frame.f_code))
            sites.append(frame.f_lasti)
            if id(frame) == outer and around is not None and around.stack is not None:
                sites.append(around.stack)
                break
            frame = frame.f_back
        key = tuple(sites)
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = self._number(outside())
        call.stack = number
        self._calls[number].append(call)

    def groups(self) -> Iterator[tuple[list[Call], tuple[str, ...]]]:
        """The calls that share a stack, and the stack's frames as text."""
        return zip(self._calls, self._numbers, strict=True)

    def _number(self, frame: FrameType | None) -> int:
        texts: list[str] = []
        while frame is not None:
            site = (id(frame.f_code), frame.f_lasti)
            if site not in self._texts:
                self._codes[site[0]] = frame.f_code
                is_ours = frame.f_code.co_filename.startswith(OWN_FOLDER)
                self._texts[site] = None if is_ours else _frame_text(frame)
            text = self._texts[site]
            if text is not None:
                texts.append(text)
            frame = frame.f_back
        number = self._numbers.setdefault(tuple(texts), len(self._calls))
        if number == len(self._calls):
            self._calls.append([])
        return number


def _frame_text(frame: FrameType) -> str | None:
    """One frame of stack.json; None when its source line cannot be found, as msProbe leaves those out."""
    code = frame.f_code
    line = linecache.getline(code.co_filename, frame.f_lineno, frame.f_globals).strip()
    if not line:
        return None
    return f"File {code.co_filename}, line {frame.f_lineno}, in {code.co_name}, \n {line}"
