"""What stands around what in a dump: every entry, and the entry of the innermost module around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probe_patch.runtime.call_names import add_backward, add_forward

if TYPE_CHECKING:
    from probe_patch.runtime.ascii_text import AsciiText
    from probe_patch.runtime.capture.forwards import Call


class Told:
    """Is told of entries, one after the other."""

    def forward(self, call: Call, parent: Call | None) -> None:
        """A forward, inside this one."""
        raise NotImplementedError

    def backward(self, call: Call, parent: Call | None) -> None:
        """A call's backward, inside the backward of this one."""
        raise NotImplementedError


class Enclosures:
    """Of what is recorded, and of the modules around that.

    Args:
        calls: all that have begun.
        dropped: entries that are not in the dump.
    """

    def __init__(self, calls: list[Call], dropped: set[str]) -> None:
        self._calls = calls
        self._dropped = dropped
        # Those to be told of besides what is recorded. Without anything dropped, what is recorded need not be asked.
        self._around: set[Call] | None = None

    def _find(self) -> set[Call]:
        around: set[Call] = set()
        dropped = self._dropped
        for call in self._calls:
            if call.is_taken and not (dropped and call.entry in dropped):
                one = call if dropped else call.parent
                while one is not None and (dropped or not one.is_taken) and one not in around:
                    around.add(one)
                    one = one.parent
        return around

    def tell(self, told: Told, first: int, end: int) -> None:
        """Tell of what these calls entered, by their numbers: of each its forward and its backward."""
        around = self._around
        if around is None:
            around = self._around = self._find()
        for call in self._calls[first:end]:
            if (call.is_taken and not self._dropped) or call in around:
                told.forward(call, call.parent)
            if call.has_backward and not (self._dropped and call.backward in self._dropped):
                told.backward(call, self._around_backward(call))

    def _around_backward(self, call: Call) -> Call | None:
        """The innermost module around the call through which something flowed back too."""
        around = call.parent
        while around is not None:
            if around.has_backward and not (self._dropped and around.backward in self._dropped):
                return around
            around = around.parent
        return None


class Parents(Told):
    """The parents' entries, by entry."""

    def __init__(self) -> None:
        self.found: dict[str, str | None] = {}

    def forward(self, call: Call, parent: Call | None) -> None:
        self.found[call.entry] = None if parent is None else parent.entry

    def backward(self, call: Call, parent: Call | None) -> None:
        self.found[call.backward] = None if parent is None else parent.backward


class ConstructText(Told):
    """Members of construct.json, each on a line: of every entry its parent, or null.

    Args:
        has_micro_batches: whether the entry's own, counted from 0, stands beside the parent.
    """

    def __init__(self, text: AsciiText, has_micro_batches: bool) -> None:
        self._text = text
        self._has_micro_batches = has_micro_batches
        self._before = "\n"

    def forward(self, call: Call, parent: Call | None) -> None:
        text = self._text
        text.add(self._before)
        add_forward(text, call)
        text.add(": [" if self._has_micro_batches else ": ")
        if parent is None:
            text.add("null")
        else:
            add_forward(text, parent)
        self._end(call)

    def backward(self, call: Call, parent: Call | None) -> None:
        text = self._text
        text.add(self._before)
        add_backward(text, call)
        text.add(": [" if self._has_micro_batches else ": ")
        if parent is None:
            text.add("null")
        else:
            add_backward(text, parent)
        self._end(call)

    def _end(self, call: Call) -> None:
        self._before = ",\n"
        if self._has_micro_batches:
            self._text.add(", ")
            self._text.add_integer(call.during.micro_batch)
            self._text.add("]")
