"""Records as JSON, in msProbe's form (26.2.0)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probe_patch.runtime.ascii_text import AsciiText
from probe_patch.runtime.capture.forms import SavedRecord, TensorList, TensorRecord, WrittenRecord

if TYPE_CHECKING:
    from probe_patch.runtime.capture.forms import Record, TensorTexts
    from probe_patch.runtime.json_text import JsonStyle


def record_text(record: Record, tensors: TensorTexts, style: JsonStyle) -> str:
    """A record, or a part of one, as JSON.

    Raises:
        TypeError: JSON has no form for something in it.
    """
    text = AsciiText()
    add_record(text, record, tensors, style)
    with text.view() as view:
        return str(view, "ascii")


# One frame per level of nesting, so that nested.DEEPEST levels fit under Python's recursion limit: hence loops. In them
# tensors, of which nearly all records are made, take no call more than they must.
def add_record(text: AsciiText, record: Record, tensors: TensorTexts, style: JsonStyle) -> None:
    """Write a record.

    Raises:
        TypeError: JSON has no form for something in it.
    """
    if type(record) is TensorRecord:
        tensors.add(text, record)
        return
    if type(record) is TensorList:
        _add_tensors(text, record, tensors)
        return
    if type(record) is str:
        text.add_string(record)
        return
    if type(record) is WrittenRecord:
        text.add(str(record))
        return
    if type(record) is SavedRecord:
        record = record.members()
    if isinstance(record, dict):
        before = "{"
        for name, part in record.items():
            text.add_key(before, name)
            before = ", "
            if type(part) is TensorRecord:
                tensors.add(text, part)
            else:
                add_record(text, part, tensors, style)
        text.add("}" if record else "{}")
    elif isinstance(record, list | tuple):
        before = "["
        for part in record:
            text.add(before)
            before = ", "
            if type(part) is TensorRecord:
                tensors.add(text, part)
            else:
                add_record(text, part, tensors, style)
        text.add("]" if record else "[]")
    else:
        text.add(style.leaf(record))


def _add_tensors(text: AsciiText, listed: TensorList, tensors: TensorTexts) -> None:
    before = "["
    for number in range(listed.first, listed.first + listed.count):
        text.add(before)
        before = ", "
        tensors.add_number(text, number)
    text.add("]" if listed.count else "[]")
