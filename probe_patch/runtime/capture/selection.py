"""config.json's ``scope`` and ``list``: which entries are recorded, by their names.

Numbers are counted over all calls, so that an entry has the name here that it has in a dump of everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_patch.config import Config
    from probe_patch.runtime.capture.forwards import Call
    from probe_patch.runtime.capture.names import CallName, ModuleName


class Selection:
    """Both ways to choose; with neither, everything is taken.

    Args:
        scope: empty, or the entries between which everything is taken, both included. It opens when the first begins
            and closes when the second ends, and may do so again and again.
        parts: parts of entry names; entries that contain one are taken. Empty: all are.
        opens_modules: whether everything that runs inside a module that is taken by its name is taken too.
    """

    def __init__(self, scope: Sequence[str] = (), parts: Sequence[str] = (), opens_modules: bool = False) -> None:
        self._first = scope[0] if scope else None
        self._last = scope[1] if scope else None
        self._is_open = not scope
        self._parts = tuple(parts)
        self._takes_all = not scope and not parts
        self._flowed: set[CallName] = set()
        self._begun_before: frozenset[str] = frozenset()
        self._opens_modules = opens_modules

    @classmethod
    def by(cls, config: Config) -> Selection:
        section = config.task_section
        return cls(section.scope, section.list_, opens_modules=config.level == "mix")

    def begin(self, call: Call) -> bool:
        """A call begins: whether its forward is taken."""
        return self._takes_all or self._begin(call.entry, [around.entry for around in call.around()])

    def end(self, call: Call) -> None:
        """The call is over."""
        if self._last is not None:
            self._end(call.entry)

    def may_take_backward(self, call: Call) -> bool:
        """Whether ``begin_backward`` may ever say yes."""
        return self._takes_all or self._is_listed(call.backward, [around.backward for around in call.around()])

    def begin_backward(self, call: Call) -> bool:
        """Something flows back through the call: whether that is taken."""
        if self._takes_all:
            return True
        is_taken = self._begin(call.backward, [around.backward for around in call.around()])
        if is_taken:
            self._flowed.add(call.name)
        return is_taken

    def end_backward(self, call: Call) -> None:
        """Nothing more will flow back through the call."""
        if self._last is not None:
            self._end(call.backward)

    def takes_parameters_of(self, module: ModuleName) -> bool:
        """Whether gradients of the module's own parameters are taken: with its backwards, behind which they come."""
        return self._takes_all or module in self._flowed

    def _begin(self, entry: str, around: Sequence[str]) -> bool:
        if entry == self._first:
            self._is_open = True
            # One gradient is that of a module and of what is around it, and may reach the inner one first.
            self._begun_before = frozenset(around)
        return self._is_open and entry not in self._begun_before and self._is_listed(entry, around)

    def _end(self, entry: str) -> None:
        if entry == self._last:
            self._is_open = False

    def _is_listed(self, entry: str, around: Sequence[str]) -> bool:
        if not self._parts or self._names(entry):
            return True
        return self._opens_modules and any(self._names(module) for module in around)

    def _names(self, entry: str) -> bool:
        return any(part in entry for part in self._parts)
