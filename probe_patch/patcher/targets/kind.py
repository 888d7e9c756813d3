"""What the patcher's core needs to know of a kind of file to patch it, without knowing which kind it is."""

import abc
import ast
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from probe_patch.config import Side
from probe_patch.debuggers import DebuggerName
from probe_patch.errors import Refused
from probe_patch.patcher.insertion import Insertion
from probe_patch.patcher.request import Request
from probe_patch.patcher.syntax import Source


class NeedsNoPatch(Refused, abc.ABC):
    """A file that is not patched because what it belongs to dumps without a patch.

    Attributes:
        side: the side of a run that it belongs to.
    """

    side: ClassVar[Side]

    @abc.abstractmethod
    def instead(self, path: Path, modes: frozenset[str], debugger: DebuggerName) -> str:
        """What to do instead, for the file at ``path``: one sentence, without the file's name.

        Args:
            path: the file.
            modes: the modes of forwards that are dumped (``extend``, ``decode``, ``all``).
            debugger: which one is to record.
        """


@dataclass(frozen=True)
class Plan:
    """The blocks that go into one file, and what its user should know of it, one sentence each."""

    insertions: tuple[Insertion, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Kind:
    """One kind of file, and how it is patched.

    Attributes:
        side: which side of a run it belongs to.
        effective: what a request comes to for this kind: what means nothing to it is left out.
        refuse: raises ``Refused`` (or ``NeedsNoPatch``) for a file that is not to be patched, before any anchor is
            looked for; it is given what Python makes of the file, and the file's name for messages.
        plan: finds the anchors and says what to insert; raises ``Refused`` where one does not match exactly once.
        read_back: checks the patched file independently of ``plan``; raises ``Refused``.
    """

    side: Side
    effective: Callable[[Request], Request]
    refuse: Callable[[ast.Module, str], None]
    plan: Callable[[Source, Request], Plan]
    read_back: Callable[[ast.Module, Request, str], None]
