from collections.abc import Hashable
from types import FrameType

def stack_key(frame: FrameType | None, outer: int, beyond: int) -> Hashable: ...
