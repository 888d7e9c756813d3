"""How far into a value we look, and the tensors found there."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from torch import Tensor

DEEPEST: Final = 400
"""Levels of nesting, as with msProbe."""

MOST_PARTS: Final = 1 << 16
"""Parts of one value. Lists that hold one another can have more than could ever be written."""

_HOLDERS: Final = (tuple, list, dict)


def tensors_in(values: tuple[Any, ...]) -> list[Tensor]:
    """The tensors in tuples, lists and dicts in order, as often as they stand there; none behind the limits."""
    tensors = []
    for value in values:
        if isinstance(value, Tensor):
            tensors.append(value)
        elif isinstance(value, _HOLDERS) and _may_hold_tensors(value):
            return list(_tensors_inside(values))
    return tensors


def _may_hold_tensors(value: Any) -> bool:
    """Whether there are not just numbers and the like in it, as in a shape."""
    for part in value.values() if isinstance(value, dict) else value:
        if isinstance(part, Tensor) or isinstance(part, _HOLDERS):  # noqa: SIM101
            return True
    return False


def _tensors_inside(values: tuple[Any, ...]) -> Iterator[Tensor]:
    walks: list[Iterator[Any]] = [iter(values)]
    around = [id(values)]
    entered = 0
    while walks:
        for value in walks[-1]:
            if isinstance(value, Tensor):
                yield value
                continue
            parts = _parts(value)
            if parts is not None and entered < MOST_PARTS and len(around) < DEEPEST and id(value) not in around:
                entered += 1
                around.append(id(value))
                walks.append(iter(parts))
                break
        else:
            walks.pop()
            around.pop()


def _parts(value: object) -> Iterable[Any] | None:
    if isinstance(value, tuple | list):
        return value
    return value.values() if isinstance(value, dict) else None
