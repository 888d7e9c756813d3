"""Call stacks of entries, in the text and the grouping of stack.json."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probe_patch.runtime.capture.frame_texts import frame_text
from probe_patch.runtime.capture.frames import outside

try:
    from probe_patch.runtime.capture.stack_keys import stack_key
except ImportError:
    # It is compiled or not there at all.
    from probe_patch.runtime.capture.frames import stack_key

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator
    from types import CodeType, FrameType

    from probe_patch.runtime.capture.forwards import Call


class CallStacks:
    """Stacks seen so far. A stack met again costs one walk over its frames and no text."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, ...], int] = {}
        self._calls: list[list[Call]] = []
        self._known: dict[Hashable, int] = {}
        # Sites are known by the identity of their code, which must therefore stay alive.
        self._codes: dict[int, CodeType] = {}

    def add(self, call: Call) -> None:
        """Record the caller's stack, innermost frame first and without our own frames, for ``call``.

        What is above the module around it is that module's stack, and not walked again.
        """
        around = call.parent
        frame = outside()
        if around is None or around.stack is None:
            key = stack_key(frame, 0, 0)
        else:
            key = stack_key(frame, around.frame, around.stack)
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = self._number(frame)
        call.stack = number
        self._calls[number].append(call)

    def groups(self) -> Iterator[tuple[list[Call], tuple[str, ...]]]:
        """The calls that share a stack, and the stack's frames as text."""
        return zip(self._calls, self._numbers, strict=True)

    def _number(self, frame: FrameType | None) -> int:
        texts: list[str] = []
        while frame is not None:
            self._codes[id(frame.f_code)] = frame.f_code
            text = frame_text(frame)
            if text is not None:
                texts.append(text)
            frame = frame.f_back
        number = self._numbers.setdefault(tuple(texts), len(self._calls))
        if number == len(self._calls):
            self._calls.append([])
        return number
