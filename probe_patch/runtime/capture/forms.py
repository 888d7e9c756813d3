"""The shape of records before their numbers are read from the device and their files are written."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import torch

    from probe_patch.runtime.capture.contents import Contents, Taken
    from probe_patch.runtime.number_texts import NumberTexts
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
    """What a record says of a tensor besides its numbers, as JSON: members before the numbers, and behind them."""

    __slots__ = ("after", "before")

    def __init__(
        self,
        type_name: str,
        dtype: torch.dtype,
        shape: tuple[int | None, ...],
        requires_grad: bool,
        placement: Placement | None = None,
    ) -> None:
        """``shape`` is that of the values looked at; None stands for a length that is not known."""
        self.before = f'"type": {json.dumps(type_name)}, "dtype": "{dtype}", "shape": {json.dumps(shape)}, '
        self.after = f'"requires_grad": {json.dumps(requires_grad)}'
        if placement is not None:
            self.after += f', "device_mesh": {json.dumps(placement.device_mesh)}'
            self.after += f', "placements": {json.dumps(placement.placements)}'


class TensorRecord:
    """A tensor's record.

    Attributes:
        look: what it says besides the numbers; shared by tensors that look alike.
        taken: what was taken of its values, in the terms of ``contents``.
        file: where its values are saved; None where they are not.
        contents: of the dump.
        number: how many tensors of the dump were recorded before it, and itself.
    """

    __slots__ = ("contents", "file", "look", "number", "taken")

    def __init__(self, look: Look, taken: Taken, file: TensorFile | None, contents: Contents, number: int) -> None:
        self.look = look
        self.taken = taken
        self.file = file
        self.contents = contents
        self.number = number

    def text(self, numbers: NumberTexts | None) -> str:
        """The record as JSON in dump.json's key order; without numbers they are null."""
        look, taken, contents = self.look, self.taken, self.contents
        text = f"{{{look.before}{contents.before(taken, numbers)}{look.after}"
        if self.file is not None and self.file.name is not None:
            text += f', "data_name": {json.dumps(self.file.name)}'
        return f"{text}{contents.after(taken)}}}"


class SavedRecord:
    """The record of what is no tensor, with its values in a file."""

    __slots__ = ("file", "record")

    def __init__(self, record: Mapping[str, Record], file: TensorFile) -> None:
        self.record = record
        self.file = file

    def members(self) -> Mapping[str, Record]:
        """The record, and the file's name at its end."""
        return {**self.record, "data_name": self.file.name} if self.file.name is not None else self.record
