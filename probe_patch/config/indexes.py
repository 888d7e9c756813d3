"""The lists of steps and ranks in a config.json."""

import re
from typing import Final

LARGEST_INDEX: Final = 1_000_000

_RANGE: Final = re.compile(r"(\d+)(?:-(\d+))?", re.ASCII)


def expand_indexes(items: list[int | str]) -> tuple[int, ...]:
    """Sorted indexes without repeats, from whole numbers, ``"3"`` and inclusive ranges ``"3-5"``.

    Raises:
        ValueError: an item that is neither, a range that runs backwards, or an index above 1 000 000.
    """
    indexes: set[int] = set()
    for item in items:
        first, last = _bounds(item)
        if first > last:
            raise ValueError(f'the range "{item}" runs backwards; write "{last}-{first}"')
        if first < 0 or last > LARGEST_INDEX:
            raise ValueError(f"{item} is outside 0 to {LARGEST_INDEX}")
        indexes.update(range(first, last + 1))
    return tuple(sorted(indexes))


def _bounds(item: int | str) -> tuple[int, int]:
    if isinstance(item, int):
        return item, item
    match = _RANGE.fullmatch(item.strip())
    if match is None:
        raise ValueError(f'"{item}" is neither a whole number nor a range like "3-5"')
    first = int(match[1])
    return first, first if match[2] is None else int(match[2])
