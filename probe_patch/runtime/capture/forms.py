"""The shape of records before their numbers are read from the device and their files are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_patch.runtime.capture.contents import Contents, Taken
    from probe_patch.runtime.stats.rows import Readings
    from probe_patch.runtime.tensor_files import TensorFile

Record: TypeAlias = (
    "bool | int | float | str | TensorRecord | SavedRecord | Sequence[Record] | Mapping[str, Record] | None"
)


@dataclass(frozen=True, slots=True)
class Placement:
    """How a distributed tensor is spread: dump.json's ``device_mesh`` and ``placements``."""

    device_mesh: Record
    placements: Record


@dataclass(frozen=True, slots=True)
class TensorRecord:
    """A tensor's record.

    Attributes:
        shape: that of the values looked at; None stands for a length that is not known.
        taken: what was taken of its values, in the terms of ``contents``.
        file: where its values are saved; None where they are not.
        number: how many tensors of the dump were recorded before it, and itself.
    """

    type_name: str
    dtype: str
    shape: tuple[int | None, ...]
    taken: Taken
    requires_grad: bool
    placement: Placement | None
    file: TensorFile | None
    contents: Contents
    number: int

    def as_json(self, readings: Readings | None) -> dict[str, Record]:
        """The record in dump.json's key order; without readings its numbers are null."""
        record: dict[str, Record] = {"type": self.type_name, "dtype": self.dtype, "shape": self.shape}
        record |= self.contents.before(self.taken, readings)
        record["requires_grad"] = self.requires_grad
        if self.placement is not None:
            record["device_mesh"] = self.placement.device_mesh
            record["placements"] = self.placement.placements
        if self.file is not None and self.file.name is not None:
            record["data_name"] = self.file.name
        return record | self.contents.after(self.taken)


@dataclass(frozen=True, slots=True)
class SavedRecord:
    """The record of what is no tensor, with its values in a file."""

    record: Mapping[str, Record]
    file: TensorFile

    def as_json(self, readings: Readings | None) -> dict[str, Record]:
        """The record, and the file's name at its end."""
        return {**self.record, "data_name": self.file.name} if self.file.name is not None else dict(self.record)
