"""Failures of our own: kept for meta.json, said once per kind in the log, never raised into the run."""

import contextlib
from dataclasses import dataclass

from probe_patch.runtime.log import LOGGER


@dataclass(frozen=True)
class Problem:
    """One kind of failure: its first message, and how often it happened."""

    kind: str
    message: str
    count: int


class Problems:
    """The failures of one dump. ``said`` holds the kinds already logged, and is shared by the dumps of a debugger."""

    def __init__(self, said: set[str]) -> None:
        self._said = said
        self._messages: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def note(self, kind: str, failure: BaseException | str) -> None:
        """Record a failure; ``kind`` says what we were doing."""
        self.keep(kind, failure)
        if kind not in self._said:
            self._said.add(kind)
            # A handler of the run's own may raise; meta.json still tells.
            with contextlib.suppress(Exception):
                LOGGER.warning("probe-patch: %s: %s; the run goes on", kind, self._messages[kind])

    def keep(self, kind: str, failure: BaseException | str) -> None:
        """Record a failure that the log has been told of."""
        self._counts[kind] = self._counts.get(kind, 0) + 1
        if kind not in self._messages:
            self._messages[kind] = _describe(failure)

    def all(self) -> tuple[Problem, ...]:
        return tuple(Problem(kind, text, self._counts[kind]) for kind, text in self._messages.items())


def _describe(failure: BaseException | str) -> str:
    if isinstance(failure, str):
        return failure
    try:
        text = str(failure)
    except Exception:
        text = "its message cannot be shown"
    return f"{type(failure).__name__}: {text}"
