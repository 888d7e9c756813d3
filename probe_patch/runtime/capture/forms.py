"""The shape of records before their numbers are read from the device and their files are written."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from probe_patch.runtime.stats.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import torch

    from probe_patch.runtime.ascii_text import AsciiText
    from probe_patch.runtime.stats.rows import Counts
    from probe_patch.runtime.tensor_files import TensorFile

_Tensors: TypeAlias = "TensorRecord | TensorList | SavedRecord"
Record: TypeAlias = "bool | int | float | str | _Tensors | Sequence[Record] | Mapping[str, Record] | None"


@dataclass(frozen=True)
class Placement:
    """How a distributed tensor is spread: dump.json's ``device_mesh`` and ``placements``."""

    device_mesh: Record
    placements: Record


class Look:
    """What a record says of a tensor besides its numbers; shared by tensors that look alike.

    Attributes:
        before: the record up to its numbers, as JSON.
        after: the members behind them.
        kind: of the values looked at; None without any, or where they have no numbers.
        is_scalar: whether these are a single value, of no dimension.
        has_floats: whether all four of its statistics are floats of their own.
    """

    __slots__ = ("after", "before", "has_floats", "is_scalar", "kind")

    def __init__(
        self,
        type_name: str,
        dtype: torch.dtype,
        shape: tuple[int | None, ...],
        requires_grad: bool,
        kind: Kind | None,
        placement: Placement | None = None,
    ) -> None:
        """``shape`` is that of the values looked at; None stands for a length that is not known."""
        lengths = ", ".join(["null" if length is None else str(length) for length in shape])
        self.before = f'{{"type": "{type_name}", "dtype": "{dtype}", "shape": [{lengths}], '
        self.after = f'"requires_grad": {"true" if requires_grad else "false"}'
        if placement is not None:
            self.after += f', "device_mesh": {json.dumps(placement.device_mesh)}'
            self.after += f', "placements": {json.dumps(placement.placements)}'
        self.kind = kind
        self.is_scalar = not shape
        self.has_floats = kind in (Kind.FLOAT, Kind.COMPLEX) and not self.is_scalar


class TensorRecord:
    """A tensor's record. See ``Recorder.read`` for the rest.

    Nothing but a number, as there are many of them: what the garbage collector has to look at is what makes it slow.

    Attributes:
        number: how many tensors of the dump were recorded before it.
    """

    __slots__ = ("number",)

    number: int


def tensor_record(number: int) -> TensorRecord:
    """The record of this number."""
    # Compiled, this is a tenth of what a call with an argument is.
    record = TensorRecord.__new__(TensorRecord)
    record.number = number
    return record


class TensorList:
    """The records of tensors that were recorded one after another, as a list: what nearly all inputs and outputs are.

    Attributes:
        first: the number of the first.
        count: how many they are.
    """

    __slots__ = ("count", "first")

    def __init__(self, first: int, count: int) -> None:
        self.first = first
        self.count = count


def tensor_records(listed: TensorList) -> list[TensorRecord]:
    """One by one."""
    return [tensor_record(number) for number in range(listed.first, listed.first + listed.count)]


class WrittenRecord(str):
    """A record that is JSON already: of a value that comes up often, or one whose tensors were read before all of its
    entry was there.
    """

    __slots__ = ()


class Taken:
    """What was taken of tensors, one after the other: by their places among these, counted from 0."""

    __slots__ = ()

    def add(self, text: AsciiText, place: int, look: Look) -> None:
        """Write the record of a tensor that looks like this, in dump.json's key order, up to its last members."""
        raise NotImplementedError

    def add_last(self, text: AsciiText, place: int) -> None:
        """Write its last members, each behind a comma."""

    def counts(self, place: int) -> Counts | None:
        """How many of its values are NaN, infinite and zero; None where they were not counted."""
        return None


class Nulls(Taken):
    """Nothing: all there is to say is null.

    Attributes:
        before: the members before ``requires_grad``, each with a comma.
        last: those at the record's end, each behind a comma.
    """

    __slots__ = ("before", "last")

    def __init__(self, before: str, last: str = "") -> None:
        self.before = before
        self.last = last

    def add(self, text: AsciiText, place: int, look: Look) -> None:
        text.add(look.before)
        text.add(self.before)
        text.add(look.after)

    def add_last(self, text: AsciiText, place: int) -> None:
        text.add(self.last)


class TensorTexts:
    """Tensors that were recorded between two reads, with their numbers.

    Args:
        first: how many there were before them.
        looks: of each.
        files: of those whose values are saved.
        taken: what was taken of each.
    """

    def __init__(self, first: int, looks: list[Look], files: dict[int, TensorFile], taken: Taken) -> None:
        self._first = first
        self._looks = looks
        self._files = files
        self._taken = taken

    def add(self, text: AsciiText, record: TensorRecord) -> None:
        """Write the record as JSON."""
        self.add_number(text, record.number)

    def add_number(self, text: AsciiText, number: int) -> None:
        """Write the record of this number."""
        place = number - self._first
        self._taken.add(text, place, self._looks[place])
        if self._files:
            text.add(_file_member(self._files.get(number)))
        self._taken.add_last(text, place)
        text.add("}")

    def counts(self, record: TensorRecord) -> Counts | None:
        """See ``Taken``."""
        return self._taken.counts(record.number - self._first)


def _file_member(file: TensorFile | None) -> str:
    return "" if file is None or file.name is None else f', "data_name": {json.dumps(file.name)}'


class SavedRecord:
    """The record of what is no tensor, with its values in a file."""

    __slots__ = ("file", "record")

    def __init__(self, record: Mapping[str, Record], file: TensorFile) -> None:
        self.record = record
        self.file = file

    def members(self) -> Mapping[str, Record]:
        """The record, and the file's name at its end."""
        return {**self.record, "data_name": self.file.name} if self.file.name is not None else self.record
