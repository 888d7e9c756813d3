"""What became of one file, for those who tell the user."""

import enum
from dataclasses import dataclass

from probe_patch.config import Side
from probe_patch.errors import ProbePatchError
from probe_patch.patcher.discovery import Target
from probe_patch.patcher.request import Request
from probe_patch.patcher.transaction import Snapshot


class State(enum.Enum):
    """What a file is, as far as probe-patch is concerned; ``NATIVE`` dumps without a patch."""

    UNPATCHED = "unpatched"
    PATCHED = "patched"
    OUTDATED = "outdated"
    NATIVE = "native"
    REFUSED = "refused"


@dataclass(frozen=True)
class Result:
    """What became of one file, or would.

    Attributes:
        target: the file.
        state: what it is after the verb.
        before: how it was read; None where it could not be.
        after: what it is to hold.
        side: the side of a run that it belongs to; None where it could not be read.
        request: what it is patched for, where that is known.
        as_expected: False where ``check`` found something else than it was to find.
        notes: what the user should know, one sentence each.
        error: why it was refused, or what failed.
    """

    target: Target
    state: State
    before: Snapshot | None = None
    after: bytes = b""
    side: Side | None = None
    request: Request | None = None
    as_expected: bool = True
    notes: tuple[str, ...] = ()
    error: ProbePatchError | None = None

    @property
    def changed(self) -> bool:
        return self.before is not None and self.before.content != self.after
