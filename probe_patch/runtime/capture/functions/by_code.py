"""What a function's bytecode tells of its instructions, read once per function."""

from collections.abc import Callable, Mapping
from types import CodeType, FrameType
from typing import Generic, TypeVar

T = TypeVar("T")


class ByCode(Generic[T]):
    """What ``read`` finds in a code, by the offsets of its instructions."""

    def __init__(self, read: Callable[[CodeType], Mapping[int, T]]) -> None:
        self._read = read
        # By identity, as comparing code takes long; each code is kept, so that none takes another's identity.
        self._known: dict[int, tuple[CodeType, Mapping[int, T]]] = {}

    def at(self, frame: FrameType) -> T | None:
        """What was found of the instruction that a frame is at."""
        code = frame.f_code
        known = self._known.get(id(code))
        if known is None:
            known = self._known[id(code)] = (code, self._read(code))
        return known[1].get(frame.f_lasti)
