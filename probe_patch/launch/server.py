"""Reads the ``server_args`` of a running SGLang, whatever its version, and never raises for what is not there."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


class _Absent:
    """What an attribute reads as that this version does not have."""

    def __bool__(self) -> bool:
        return False


ABSENT: Final = _Absent()


@dataclass(frozen=True)
class Server:
    """A running server, and what is dumped of it.

    Attributes:
        server_args: SGLang's object of that name.
        modes: the modes of forwards that are dumped.
        environ: the environment of the process.
    """

    server_args: object
    modes: frozenset[str]
    environ: Mapping[str, str]

    def has(self, field: str) -> bool:
        return self.read(field) is not ABSENT

    def wants(self, mode: str) -> bool:
        """Whether forwards of ``mode`` are dumped."""
        return mode in self.modes or "all" in self.modes

    def read(self, *path: str) -> object:
        """The value of a field, or of what is nested in it by attribute or by key; ABSENT if any part is not there.

        Since 0.5.15 SGLang keeps what it settled on beside the fields, in ``_resolved_overrides``: pairs of a source
        and the fields it decided, of which the last one counts.
        """
        name, *inside = path
        value = self._settled(name)
        if value is ABSENT:
            value = _part(self.server_args, name)
        for name in inside:
            value = _part(value, name)
        return value

    def _settled(self, name: str) -> object:
        decisions = _part(self.server_args, "_resolved_overrides")
        if isinstance(decisions, list | tuple):
            for decision in reversed(decisions):
                match decision:
                    case (_, Mapping() as fields) if name in fields:
                        return fields[name]
        return ABSENT


def _part(value: object, name: str) -> object:
    try:
        if isinstance(value, Mapping):
            return value.get(name, ABSENT)
        return getattr(value, name, ABSENT)
    except Exception:  # a property of SGLang's may raise anything
        return ABSENT
