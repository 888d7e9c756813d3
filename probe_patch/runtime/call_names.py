"""The names of calls' entries as JSON, written without being put together before."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from probe_patch.runtime.ascii_text import AsciiText
    from probe_patch.runtime.capture.forwards import Call


def add_forward(text: AsciiText, call: Call) -> None:
    """Write ``call.entry``."""
    name = call.name
    _add(text, name.label, name.around_forward, call.number)


def add_backward(text: AsciiText, call: Call) -> None:
    """Write ``call.backward``."""
    name = call.name
    _add(text, name.label, name.around_backward, call.number)


def _add(text: AsciiText, label: str, around: tuple[str, str], number: int) -> None:
    before, behind = around
    text.add('"')
    text.add_inside(label)
    text.add(before)
    text.add_integer(number)
    text.add(behind)
    text.add('"')
