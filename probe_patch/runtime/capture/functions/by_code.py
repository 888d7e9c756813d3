"""What a function's bytecode tells of its instructions, read once per function."""

from collections.abc import Callable, Mapping
from functools import partial
from types import CodeType, FrameType
from typing import Generic, TypeVar
from weakref import ref

T = TypeVar("T")


class ByCode(Generic[T]):
    """What ``read`` finds in a code, by the offsets of its instructions. It is kept for as long as the code lives."""

    def __init__(self, read: Callable[[CodeType], Mapping[int, T]]) -> None:
        self._read = read
        # By identity, as comparing code takes long.
        self._known: dict[int, Mapping[int, T]] = {}
        self._codes: dict[int, ref[CodeType]] = {}

    def at(self, frame: FrameType) -> T | None:
        """What was found of the instruction that a frame is at."""
        code = frame.f_code
        known = self._known.get(id(code))
        if known is None:
            known = self._first(code)
        return known.get(frame.f_lasti)

    def _first(self, code: CodeType) -> Mapping[int, T]:
        found = self._read(code)
        # What comes after the code may take its identity.
        self._codes[id(code)] = ref(code, partial(self._forget, id(code)))
        self._known[id(code)] = found
        return found

    def _forget(self, identity: int, _: object) -> None:
        self._known.pop(identity, None)
        self._codes.pop(identity, None)
