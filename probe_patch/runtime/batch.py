"""Entries whose tensors were read together, on their way into the lines of a dump."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probe_patch.runtime.call_names import add_backward, add_forward
from probe_patch.runtime.record_text import add_record

if TYPE_CHECKING:
    from probe_patch.runtime.ascii_text import AsciiText
    from probe_patch.runtime.capture.backward import Backward
    from probe_patch.runtime.capture.forms import Record, TensorTexts
    from probe_patch.runtime.capture.forwards import Call
    from probe_patch.runtime.capture.wanted import Wanted
    from probe_patch.runtime.json_text import JsonStyle
    from probe_patch.runtime.lines import Lines
    from probe_patch.runtime.problems import Problems

_NOTHING = '{"input_args": [], "input_kwargs": {}, "output": []}'


class Batch:
    """Each entry is written once, also if writing is cut short and goes on later.

    Args:
        calls: whose forwards are complete, as far as they will ever be.
        backwards: the same of backwards.
        others: other entries and their records.
    """

    def __init__(
        self, calls: list[Call], backwards: list[Backward], others: list[tuple[str, Record]], tensors: TensorTexts
    ) -> None:
        self._calls = calls[::-1]
        self._backwards = backwards[::-1]
        self._others = others[::-1]
        self._tensors = tensors

    def drop(self) -> None:
        """Let go of the records."""
        for call in self._calls:
            call.give_record()
        self._calls, self._backwards, self._others = [], [], []

    def write(self, lines: Lines, wanted: Wanted, style: JsonStyle, problems: Problems) -> None:
        """Add a line per entry. One that JSON has no form for is empty, and a problem."""
        while self._calls:
            call = self._calls.pop()
            record = call.give_record()
            text = lines.begin()
            add_forward(text, call)
            self._add(text, record, style, problems)
            lines.end()
        while self._backwards:
            backward = self._backwards.pop()
            text = lines.begin()
            add_backward(text, backward.call)
            self._add(text, backward.record(wanted), style, problems)
            lines.end()
        while self._others:
            entry, other = self._others.pop()
            text = lines.begin()
            text.add_string(entry)
            self._add(text, other, style, problems)
            lines.end()

    def _add(self, text: AsciiText, record: Record, style: JsonStyle, problems: Problems) -> None:
        text.add(": ")
        begin = text.size
        try:
            add_record(text, record, self._tensors, style)
        except Exception as error:
            problems.note("encoding an entry", error)
            text.cut(begin)
            text.add(_NOTHING)
