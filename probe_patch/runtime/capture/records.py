"""From the values a module takes and gives to records in the form of msProbe's dump.json (26.2.0)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import Tensor, nn

from probe_patch.runtime.capture.arrays import array_record, array_values, is_array
from probe_patch.runtime.capture.forms import (
    Look,
    Record,
    SavedRecord,
    TensorList,
    TensorRecord,
    TensorTexts,
    WrittenRecord,
    tensor_record,
    tensor_records,
)
from probe_patch.runtime.capture.looks import look_of
from probe_patch.runtime.capture.nested import DEEPEST, MOST_PARTS
from probe_patch.runtime.capture.point_to_point import is_point_to_point, point_to_point_record
from probe_patch.runtime.capture.scalars import scalar_record
from probe_patch.runtime.capture.slices import sliced
from probe_patch.runtime.stats.kinds import is_readable, private_format
from probe_patch.runtime.stats.plain import is_plain, plain_values
from probe_patch.runtime.stats.states import state_of

if TYPE_CHECKING:
    from probe_patch.config.sections import Slice
    from probe_patch.runtime.capture.contents import Contents
    from probe_patch.runtime.capture.forwards import Call
    from probe_patch.runtime.capture.unchanged import Known
    from probe_patch.runtime.json_text import JsonStyle
    from probe_patch.runtime.problems import Problems
    from probe_patch.runtime.tensor_files import TensorFile, TensorFiles

_PRIVATE: Final = (
    "a tensor in the NPU's format {layout} cannot be read safely, so it has no numbers; to have them, keep its "
    "tensors in open formats (torch.npu.config.allow_internal_format = False)"
)


_NO_KEYWORDS: Final[dict[str, Record]] = {}
"""One for all, as most calls have none. Nothing is put into it."""

_SINGLE_KEYWORDS: Final[dict[tuple[str, WrittenRecord], dict[str, Record]]] = {}
_MOST_KEYWORDS: Final = 1024

_SCALARS: Final = frozenset({bool, int, float, str})


class Recorder:
    """Makes records of one dump: apart from the run (see ``ApartFromTheRun``), which goes on only after a ``launch``.

    Nothing it is given can make it raise: what fails becomes null and a problem.

    Attributes:
        tensors: how many it has made a record of.
        looks: of those since the last read.
        further_slices: parts of the tensors to look at, besides the config's; they may change from one start to the
            next. Of parameters and their gradients, all is looked at.
        known: tensors that have a record and are as they were then; None where that cannot be told. See ``Unchanged``.
    """

    def __init__(
        self, contents: Contents, problems: Problems, slices: tuple[Slice, ...] = (), files: TensorFiles | None = None
    ) -> None:
        self._contents = contents
        self._problems = problems
        self._slices = slices
        self._files = files
        self._takes_whole = not slices
        self._parts = 0
        self.looks: list[Look] = []
        self._known_looks: dict[tuple[torch.dtype, torch.Size, bool], Look] = {}
        self._file_of: dict[int, TensorFile] = {}
        self.tensors = 0
        self.further_slices: tuple[Slice, ...] = ()
        self.known: Known | None = None

    def launch(self) -> None:
        """Take of the values what records say of them, which may change from then on."""
        try:
            self._contents.launch()
        except Exception as error:
            self._problems.note("measuring a tensor", error)

    def arguments(self, call: Call, values: tuple[object, ...]) -> Record:
        """``input_args``: a list."""
        if self._files is None:
            return self._listed(values)
        place = self._place(call.entry, "input")
        return [self._guarded(value, None, place and f"{place}.{index}") for index, value in enumerate(values)]

    def keywords(self, call: Call, values: Mapping[str, object]) -> dict[str, Record]:
        """``input_kwargs``."""
        if not values:
            return _NO_KEYWORDS
        place = "" if self._files is None else self._place(call.entry, "kwargs")
        records = {name: self._guarded(value, name, place and f"{place}.{name}") for name, value in values.items()}
        return _shared(records) if len(records) == 1 else records

    def output(self, call: Call, value: object) -> Record:
        """``output``: a list, except for a named tuple, which stays an object of its fields."""
        place = "" if self._files is None else self._place(call.entry, "output")
        if isinstance(value, tuple | list) and not isinstance(value, torch.Size):
            return self._guarded(value, None, place)
        if self._files is None:
            return self._listed((value,))
        return [self._guarded(value, None, place and f"{place}.0")]

    def arrived(self, call: Call, number: int, gradient: Tensor) -> Record:
        """The gradient of one of a call's outputs: a part of its backward's ``input``."""
        place = "" if self._files is None else self._place(call.backward, f"input.{number}")
        return self._guarded(gradient, None, place)

    def passed_on(self, call: Call, number: int, gradient: Tensor) -> Record:
        """The gradient of one of a call's inputs: a part of its backward's ``output``."""
        place = "" if self._files is None else self._place(call.backward, f"output.{number}")
        return self._guarded(gradient, None, place)

    def again(self, record: Record) -> TensorRecord | None:
        """One more record of what has just been looked at, for another entry; None if that has a file of its own."""
        return self._again(record) if isinstance(record, TensorRecord) else None

    def _again(self, record: TensorRecord) -> TensorRecord | None:
        if self._files is not None:
            return None
        place = record.number - self.tensors + len(self.looks)
        if place < 0:
            return None
        self._contents.take_again(place)
        return self._add(self.looks[place])

    def parameter_gradient(self, entry: str, parameter: str, gradient: Tensor) -> Record:
        """The gradient of one parameter."""
        tokens, self.further_slices = self.further_slices, ()
        try:
            return self._guarded(gradient, None, self._place(entry, parameter))
        finally:
            self.further_slices = tokens

    def saved(self, entry: str, value: object, path: str = "") -> Record:
        """A value that was saved by name, or the gradient of the part of it that ``path`` leads to."""
        return self._guarded(value, None, self._place(entry, path))

    def parameters(self, call: Call, module: nn.Module) -> dict[str, Record]:
        """``parameters``: those of the module itself, not of its children."""
        own: dict[str, nn.Parameter | None] = module._parameters
        if not own:
            return {}
        place = "" if self._files is None else self._place(call.entry, "parameters")
        return {
            name: self._guarded(parameter, None, place and f"{place}.{name}")
            for name, parameter in own.items()
            if parameter is not None
        }

    def read(self, style: JsonStyle) -> TensorTexts:
        """All tensors since the last read, with their numbers; where these cannot be had, they are null."""
        first, looks, files = self.tensors - len(self.looks), self.looks, self._file_of
        self.looks, self._file_of = [], {}
        try:
            taken = self._contents.read(style)
        except Exception as error:
            self._problems.note("reading the statistics", error)
            taken = self._contents.nothing()
        return TensorTexts(first, looks, files, taken)

    @property
    def holds_files(self) -> bool:
        """Whether there are files that are written when the recording stops: records name those that succeed."""
        return self._files is not None and self._files.are_held

    def finish(self) -> None:
        """The recording stops: write the files that are not on disk yet."""
        if self._files is not None:
            self._files.finish()

    def _place(self, entry: str, path: str) -> str:
        """Where in the dump something stands, for the names of files; empty where none are written."""
        if self._files is None or not self._files.takes(entry):
            return ""
        return f"{entry}.{path}" if path else entry

    def _listed(self, values: tuple[object, ...]) -> Record:
        first, made = self.tensors, 0
        records: list[Record] | None = None
        for value in values:
            record = self._guarded(value, None, "")
            if records is None:
                if type(record) is TensorRecord:
                    tensor = record
                    if tensor.number == first + made:
                        made += 1
                        continue
                records = [*tensor_records(TensorList(first, made))]
            records.append(record)
        return TensorList(first, made) if records is None else records

    def _guarded(self, value: object, keyword: str | None, place: str) -> Record:
        self._parts = 0
        try:
            if is_plain(value):
                return self._tensor(value, place)  # type: ignore[arg-type]
            return self._record(value, keyword, None, place)
        except Exception as error:
            self._problems.note("recording a value", error)
            return None

    # One frame per level of nesting, so that DEEPEST levels fit under Python's recursion limit: hence loops.
    def _record(self, value: object, keyword: str | None, around: list[int] | None, place: str) -> Record:
        self._parts += 1
        kind = type(value)
        if value is None:
            return None
        if kind in _SCALARS:
            return scalar_record(value, keyword)
        if isinstance(value, Tensor):
            return self._tensor(value, place)
        # Most have no parts or are just these, and to find out takes long.
        named = None if kind is tuple or kind is list else named_parts(value)
        listed = None if named is not None else listed_parts(value)
        if named is None and listed is None:
            record = scalar_record(value, keyword)
            return self._special(value, place) if record is None else record
        if around is None:
            around = []
        if id(value) in around or len(around) >= DEEPEST:
            return None
        if self._parts > MOST_PARTS:
            raise ValueError(f"a value has more than {MOST_PARTS} parts")
        around.append(id(value))
        try:
            if named is not None:
                members: dict[str, Record] = {}
                for name, part in named:
                    members[str(name)] = self._record(part, None, around, place and f"{place}.{name}")
                return members
            records: list[Record] = []
            for index, part in enumerate(listed or ()):
                records.append(self._record(part, None, around, place and f"{place}.{index}"))
            return records
        finally:
            around.pop()

    def _tensor(self, tensor: Tensor, place: str) -> TensorRecord:
        known = self.known
        state = state_of(tensor) if known is not None and is_plain(tensor) else None
        if known is None or state is None:
            return self._looked_at(tensor, place)
        record = known.get(state)
        if record is not None:
            record = self._again(record)
        if record is None:
            record = known[state] = self._looked_at(tensor, place)
        return record

    def _looked_at(self, tensor: Tensor, place: str) -> TensorRecord:
        if self._takes_whole and not place and not self.further_slices and is_plain(tensor):
            whole = self._contents.take_whole(tensor)
            if whole is not None:
                return self._add(whole)
        values: Tensor | None = None
        try:
            values = plain_values(tensor)
            if values is not None and (self._slices or self.further_slices or not values.is_cpu):
                values = self._part_of(tensor, values)
            look = self._look(tensor, values)
            # Asked once, for numbers and checksums alike.
            self._contents.take(values if values is not None and is_readable(values) else None, look.kind)
        except Exception as error:
            self._problems.note("measuring a tensor", error)
            values = None
            look = look_of(tensor, None)
            self._contents.take(None, None)
        record = self._add(look)
        if place and values is not None and (file := self._saved(values, place)) is not None:
            self._file_of[record.number] = file
        return record

    def _add(self, look: Look) -> TensorRecord:
        record = tensor_record(self.tensors)
        self.tensors += 1
        self.looks.append(look)
        return record

    def _look(self, tensor: Tensor, values: Tensor | None) -> Look:
        """``values`` are the ones looked at, if the tensor has any."""
        if values is not tensor:
            return look_of(tensor, values)
        key = (tensor.dtype, tensor.shape, tensor.requires_grad)
        look = self._known_looks.get(key)
        if look is None:
            look = self._known_looks[key] = look_of(tensor, values)
        return look

    def _part_of(self, tensor: Tensor, values: Tensor) -> Tensor | None:
        """The part of the tensor's plain values that is looked at."""
        if (layout := private_format(values)) is not None:
            self._problems.note("measuring tensors in private formats", _PRIVATE.format(layout=layout))
            return None
        # What is cut out for each start is tokens, and a parameter has none.
        slices = self._slices if isinstance(tensor, nn.Parameter) else self._slices + self.further_slices
        return sliced(values, slices) if slices else values

    def _saved(self, values: Tensor, place: str) -> TensorFile | None:
        try:
            return None if self._files is None else self._files.save(place, values.detach())
        except Exception as error:
            self._problems.note("saving a tensor", error)
            return None

    def _special(self, value: Any, place: str) -> Record:
        """What holds numbers but is no tensor; None for everything else."""
        if is_point_to_point(value):
            return point_to_point_record(value, self._tensor(value.tensor, place))
        if not is_array(value):
            return None
        record = array_record(value)
        values = array_values(value) if place else None
        file = None if values is None else self._saved(values, place)
        return record if file is None else SavedRecord(record, file)


def _shared(records: dict[str, Record]) -> dict[str, Record]:
    """The same, of a value that comes up often: made once."""
    ((name, record),) = records.items()
    if type(record) is not WrittenRecord:
        return records
    known = _SINGLE_KEYWORDS.get((name, record))
    if known is None:
        known = records
        if len(_SINGLE_KEYWORDS) < _MOST_KEYWORDS:
            _SINGLE_KEYWORDS[name, record] = records
    return known


def named_parts(value: Any) -> Iterable[tuple[object, object]] | None:
    """The parts of a value that become members of an object; None where it becomes none."""
    if isinstance(value, Mapping):
        return value.items()
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return zip(value._fields, value, strict=True)
    if is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name, None)) for field in fields(value)]
    return None


def listed_parts(value: object) -> Iterable[object] | None:
    """The parts of a value that become items of a list; None where it becomes none."""
    return value if isinstance(value, list | tuple) and not isinstance(value, torch.Size) else None
