"""The shape of records before their numbers are read from the device."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from probe_patch.runtime.stats.table import NO_SUMMARY, Readings, Row

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Record: TypeAlias = "bool | int | float | str | TensorRecord | Sequence[Record] | Mapping[str, Record] | None"


@dataclass(frozen=True, slots=True)
class Placement:
    """How a distributed tensor is spread: dump.json's ``device_mesh`` and ``placements``."""

    device_mesh: Record
    placements: Record


@dataclass(frozen=True, slots=True)
class TensorRecord:
    """A tensor's record; ``row`` is None when it has no statistics. ``shape`` is that of the values measured."""

    type_name: str
    dtype: str
    shape: tuple[int, ...]
    row: Row | None
    requires_grad: bool
    placement: Placement | None

    def as_json(self, readings: Readings | None) -> dict[str, Record]:
        """The record in dump.json's key order; without readings its numbers are null."""
        summary = NO_SUMMARY if self.row is None or readings is None else readings.summary(self.row)
        record: dict[str, Record] = {
            "type": self.type_name,
            "dtype": self.dtype,
            "shape": self.shape,
            "Max": summary.maximum,
            "Min": summary.minimum,
            "Mean": summary.mean,
            "Norm": summary.norm,
            "requires_grad": self.requires_grad,
        }
        if self.placement is not None:
            record["device_mesh"] = self.placement.device_mesh
            record["placements"] = self.placement.placements
        return record
