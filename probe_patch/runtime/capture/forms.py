"""The shape of records before their numbers are read from the device and their files are written."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from probe_patch.runtime.stats.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import torch

    from probe_patch.runtime.capture.contents import Taken
    from probe_patch.runtime.stats.rows import Counts
    from probe_patch.runtime.tensor_files import TensorFile

Record: TypeAlias = (
    "bool | int | float | str | TensorRecord | SavedRecord | Sequence[Record] | Mapping[str, Record] | None"
)


@dataclass(frozen=True)
class Placement:
    """How a distributed tensor is spread: dump.json's ``device_mesh`` and ``placements``."""

    device_mesh: Record
    placements: Record


class Look:
    """What a record says of a tensor besides its numbers; shared by tensors that look alike.

    Attributes:
        before: the members before the numbers, as JSON.
        after: those behind them.
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
        self.before = f'"type": {json.dumps(type_name)}, "dtype": "{dtype}", "shape": {json.dumps(shape)}, '
        self.after = f'"requires_grad": {json.dumps(requires_grad)}'
        if placement is not None:
            self.after += f', "device_mesh": {json.dumps(placement.device_mesh)}'
            self.after += f', "placements": {json.dumps(placement.placements)}'
        self.kind = kind
        self.is_scalar = not shape
        self.has_floats = kind in (Kind.FLOAT, Kind.COMPLEX) and not self.is_scalar


class TensorRecord(int):
    """A tensor's record: how many tensors of the dump were recorded before it. See ``Recorder.read`` for the rest.

    A bare number, as there are many of them: what the garbage collector has to look at is what makes it slow.
    """

    __slots__ = ()


class WrittenRecord(str):
    """A record that is JSON already, as its tensors were read before all of its entry was there."""

    __slots__ = ()


class TensorTexts:
    """Tensors that were recorded between two reads, with their numbers.

    Args:
        first: how many there were before them.
        looks: of each.
        files: of those whose values are saved.
        taken: what was taken of each.
    """

    def __init__(self, first: int, looks: Sequence[Look], files: Mapping[int, TensorFile], taken: Taken) -> None:
        self._first = first
        self._counts = taken.counts
        each = enumerate(zip(looks, taken.before, taken.after, strict=False), first)
        if files:
            self._texts = [
                f"{{{look.before}{before}{look.after}{_file_member(files.get(number))}{after}}}"
                for number, (look, before, after) in each
            ]
        else:
            self._texts = [f"{{{look.before}{before}{look.after}{after}}}" for _, (look, before, after) in each]

    def text(self, record: TensorRecord) -> str:
        """The record as JSON in dump.json's key order."""
        return self._texts[record - self._first]

    def counts(self, record: TensorRecord) -> Counts | None:
        """How many of its values are NaN, infinite and zero, where they were counted."""
        return self._counts(record - self._first)


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
