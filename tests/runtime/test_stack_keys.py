"""Keys of call stacks, as Python makes them and as compiled code does."""

import sys
from collections.abc import Callable, Hashable
from types import FrameType
from typing import TypeAlias

import pytest

from probe_patch.runtime.capture import frames

try:
    from probe_patch.runtime.capture.stack_keys import stack_key as compiled
except ImportError:
    compiled = frames.stack_key

MakeKey: TypeAlias = Callable[[FrameType | None, int, int], Hashable]

pytestmark = pytest.mark.parametrize(
    "make", [pytest.param(frames.stack_key, id="python"), pytest.param(compiled, id="compiled")]
)


def key_below(depth: int, make: MakeKey, outer: int = 0, beyond: int = 0) -> Hashable:
    if depth:
        return key_below(depth - 1, make, outer, beyond)
    return make(sys._getframe(), outer, beyond)


@pytest.mark.parametrize("depth", [0, 1, 255, 256, 257, 600])
def test_one_stack_has_one_key_and_a_deeper_one_another(make: MakeKey, depth: int) -> None:
    same, again, deeper = (key_below(depth + more, make) for more in (0, 0, 1))
    assert same == again
    assert hash(same) == hash(again)
    assert deeper != same


def test_two_calls_in_one_line_have_two_keys(make: MakeKey) -> None:
    assert key_below(0, make) != key_below(0, make)


def from_here(depth: int, make: MakeKey, beyond: int) -> Hashable:
    return key_below(depth, make, id(sys._getframe()), beyond)


@pytest.mark.parametrize("depth", [0, 254, 255, 256])
def test_behind_the_outer_frame_a_number_stands_for_the_rest(make: MakeKey, depth: int) -> None:
    first, second, other = (from_here(depth, make, beyond) for beyond in (7, 7, 8))
    elsewhere = from_here(depth, make, 7)
    assert first == second == elsewhere
    assert other != first


def test_no_frame_has_the_key_of_nothing(make: MakeKey) -> None:
    assert make(None, 0, 0) == make(None, 0, 1)
