"""Which tokens one start records: some of the model's forwards, and one request's part of them."""

from dataclasses import dataclass
from typing import Final

from probe_patch.config.sections import Slice
from probe_patch.errors import WrongUsage


@dataclass(frozen=True)
class TokenRange:
    """Which forwards of the model since the start are recorded, from 0; both ends are included."""

    first: int
    last: int

    def begins(self, forward: int) -> bool:
        """Whether recording begins with this forward."""
        return forward == self.first

    def ends(self, forward: int) -> bool:
        """Whether recording ends with this forward."""
        return forward == self.last


def token_range_of(given: object) -> TokenRange | None:
    """From ``[first, last]``; None from None.

    Raises:
        WrongUsage: it is anything else.
    """
    if given is None:
        return None
    if not isinstance(given, list | tuple) or len(given) != 2 or not all(_is_whole(number) for number in given):
        raise WrongUsage(f"token_range is {given!r}; write the first and the last forward, such as [0, 3]")
    first, last = given
    if not 0 <= first <= last:
        raise WrongUsage(f"token_range is {given!r}; the first forward is at least 0 and at most the last one")
    return TokenRange(first, last)


@dataclass(frozen=True)
class ChosenTokens:
    """What one start records of the tokens that pass; by default, everything.

    Attributes:
        forwards: which of the model's forwards; None for all, and for what runs outside of them too.
        part: which part of each tensor.
    """

    forwards: TokenRange | None = None
    part: Slice | None = None


ALL_TOKENS: Final = ChosenTokens()


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
