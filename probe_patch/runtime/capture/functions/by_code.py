"""What a function's bytecode tells of its instructions, read once per function."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import ref

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import CodeType, FrameType


class ByCode:
    """What ``read`` finds in a code, by the offsets of its instructions. It is kept for as long as the code lives."""

    def __init__(self, read: Callable[[CodeType], Mapping[int, object]]) -> None:
        self._read = read
        # By identity, as comparing code takes long.
        self._known: dict[int, Mapping[int, object]] = {}
        self._codes: dict[int, ref[CodeType]] = {}

    def at(self, frame: FrameType) -> Any:
        """What was found of the instruction that a frame is at; None for nothing."""
        code = frame.f_code
        known = self._known.get(id(code))
        if known is None:
            known = self._first(code)
        return known.get(frame.f_lasti)

    def _first(self, code: CodeType) -> Mapping[int, object]:
        found = self._read(code)
        # What comes after the code may take its identity.
        self._codes[id(code)] = ref(code, partial(self._forget, id(code)))
        self._known[id(code)] = found
        return found

    def _forget(self, identity: int, _: object) -> None:
        self._known.pop(identity, None)
        self._codes.pop(identity, None)
