"""From the values a module takes and gives to records in the form of msProbe's dump.json (26.2.0)."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn

from probe_patch.runtime.capture.forms import Record, TensorRecord
from probe_patch.runtime.capture.placements import placement_of
from probe_patch.runtime.capture.scalars import group_id, is_point_to_point, scalar_record
from probe_patch.runtime.problems import Problems
from probe_patch.runtime.stats.kinds import kind_of
from probe_patch.runtime.stats.plain import is_dtensor, plain_values
from probe_patch.runtime.stats.table import Row, StatisticsTable

DEEPEST: Final = 400


class Recorder:
    """Makes records of one dump. Nothing it is given can make it raise: what fails becomes null and a problem."""

    def __init__(self, table: StatisticsTable, problems: Problems) -> None:
        self._table = table
        self._problems = problems
        self.tensors = 0

    def arguments(self, entry: str, values: tuple[object, ...]) -> list[Record]:
        """``input_args``."""
        return [self._guarded(value, None) for value in values]

    def keywords(self, entry: str, values: Mapping[str, object]) -> dict[str, Record]:
        """``input_kwargs``."""
        return {name: self._guarded(value, name) for name, value in values.items()}

    def output(self, entry: str, value: object) -> Record:
        """``output``: a list, except for a named tuple, which stays an object of its fields."""
        record = self._guarded(value, None)
        if isinstance(value, tuple | list) and not isinstance(value, torch.Size):
            return record
        return [record]

    def arrived(self, entry: str, number: int, gradient: Tensor) -> Record:
        """The gradient of one of a call's outputs: a part of its backward's ``input``."""
        return self._guarded(gradient, None)

    def passed_on(self, entry: str, number: int, gradient: Tensor) -> Record:
        """The gradient of one of a call's inputs: a part of its backward's ``output``."""
        return self._guarded(gradient, None)

    def parameter_gradient(self, entry: str, parameter: str, gradient: Tensor) -> Record:
        """The gradient of one parameter."""
        return self._guarded(gradient, None)

    def parameters(self, entry: str, module: nn.Module) -> dict[str, Record]:
        """``parameters``: those of the module itself, not of its children."""
        own = module.named_parameters(recurse=False, remove_duplicate=False)
        return {name: self._guarded(parameter, None) for name, parameter in own}

    def _guarded(self, value: object, keyword: str | None) -> Record:
        try:
            return self._record(value, keyword, [])
        except Exception as error:
            self._problems.note("recording a value", error)
            return None

    # One frame per level of nesting, so that DEEPEST levels fit under Python's recursion limit: hence loops.
    def _record(self, value: object, keyword: str | None, around: list[int]) -> Record:
        if value is None:
            return None
        if isinstance(value, Tensor):
            return self._tensor(value)
        named = _named_parts(value)
        listed = None if named is not None else _listed_parts(value)
        if named is None and listed is None:
            return self._point_to_point(value) if is_point_to_point(value) else scalar_record(value, keyword)
        if id(value) in around or len(around) >= DEEPEST:
            return None
        around.append(id(value))
        try:
            if named is not None:
                record: dict[str, Record] = {}
                for name, part in named:
                    record[str(name)] = self._record(part, None, around)
                return record
            records: list[Record] = []
            for part in listed or ():
                records.append(self._record(part, None, around))  # noqa: PERF401
            return records
        finally:
            around.pop()

    def _point_to_point(self, operation: Any) -> Record:
        """One part of what ``batch_isend_irecv`` is given."""
        return {
            "class_type": "torch.distributed.P2POp",
            "tensor": self._tensor(operation.tensor),
            "op": operation.op.__name__,
            "peer": operation.peer,
            "tag": operation.tag,
            "group_id": group_id(operation.group),
        }

    def _tensor(self, tensor: Tensor) -> TensorRecord:
        self.tensors += 1
        values, row = self._measured(tensor)
        return TensorRecord(
            type_name=_type_name(tensor),
            dtype=str(tensor.dtype),
            shape=tuple(tensor.shape if values is None else values.shape),
            row=row,
            requires_grad=tensor.requires_grad,
            placement=placement_of(tensor) if is_dtensor(tensor) else None,
        )

    def _measured(self, tensor: Tensor) -> tuple[Tensor | None, Row | None]:
        values: Tensor | None = None
        try:
            values = plain_values(tensor)
            kind = None if values is None else kind_of(values)
            row = None if values is None or kind is None else self._table.add(values, kind)
        except Exception as error:
            self._problems.note("measuring a tensor", error)
            return values, None
        return values, row


def _type_name(tensor: Tensor) -> str:
    if is_dtensor(tensor):
        return "torch.distributed.tensor.DTensor"
    return "torch.nested._internal.nested_tensor.NestedTensor" if tensor.is_nested else "torch.Tensor"


def _named_parts(value: Any) -> Iterable[tuple[object, object]] | None:
    if isinstance(value, Mapping):
        return value.items()
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return zip(value._fields, value, strict=True)
    if is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name, None)) for field in fields(value)]
    return None


def _listed_parts(value: object) -> Iterable[object] | None:
    return value if isinstance(value, list | tuple) and not isinstance(value, torch.Size) else None
