"""The numbers of rows, one behind the other: one per tensor that is recorded.

This is what stands in for ``row_numbers.pyx`` where nothing is compiled; both do the same.
"""


class RowNumbers:
    """A list of whole numbers of at most 63 bits."""

    def __init__(self) -> None:
        self._numbers: list[int] = []

    def append(self, number: int) -> None:
        self._numbers.append(number)

    def at(self, place: int) -> int:
        """The number at a place that there is, counted from 0."""
        return self._numbers[place]
