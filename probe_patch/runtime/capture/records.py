"""From the values a module takes and gives to records in the form of msProbe's dump.json (26.2.0)."""

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import Tensor, nn

from probe_patch.config.sections import Slice
from probe_patch.runtime.capture.arrays import array_record, array_values, is_array
from probe_patch.runtime.capture.contents import NOTHING, Contents, Taken
from probe_patch.runtime.capture.forms import Record, SavedRecord, TensorRecord
from probe_patch.runtime.capture.nested import DEEPEST, MOST_PARTS
from probe_patch.runtime.capture.placements import placement_of
from probe_patch.runtime.capture.point_to_point import is_point_to_point, point_to_point_record
from probe_patch.runtime.capture.scalars import scalar_record
from probe_patch.runtime.capture.slices import sliced
from probe_patch.runtime.problems import Problems
from probe_patch.runtime.stats.apart import apart_from_the_run
from probe_patch.runtime.stats.plain import is_dtensor, plain_values
from probe_patch.runtime.stats.rows import Readings
from probe_patch.runtime.tensor_files import TensorFile, TensorFiles


class Recorder:
    """Makes records of one dump, inside ``recording``.

    Nothing it is given can make it raise: what fails becomes null and a problem.

    Attributes:
        tensors: how many it has made a record of.
        further_slices: parts of the tensors to look at, besides the config's; they may change from one start to the
            next. Of parameters and their gradients, all is looked at.
    """

    def __init__(
        self, contents: Contents, problems: Problems, slices: tuple[Slice, ...] = (), files: TensorFiles | None = None
    ) -> None:
        self._contents = contents
        self._problems = problems
        self._slices = slices
        self._files = files
        self._parts = 0
        self.tensors = 0
        self.further_slices: tuple[Slice, ...] = ()

    def recording(self) -> AbstractContextManager[None]:
        """Make records in the block, apart from the run; what they say of values is taken by its end."""
        return _Recording(self)

    def arguments(self, entry: str, values: tuple[object, ...]) -> list[Record]:
        """``input_args``."""
        place = self._place(entry, "input")
        return [self._guarded(value, None, place and f"{place}.{index}") for index, value in enumerate(values)]

    def keywords(self, entry: str, values: Mapping[str, object]) -> dict[str, Record]:
        """``input_kwargs``."""
        place = self._place(entry, "kwargs")
        return {name: self._guarded(value, name, place and f"{place}.{name}") for name, value in values.items()}

    def output(self, entry: str, value: object) -> Record:
        """``output``: a list, except for a named tuple, which stays an object of its fields."""
        place = self._place(entry, "output")
        if isinstance(value, tuple | list) and not isinstance(value, torch.Size):
            return self._guarded(value, None, place)
        return [self._guarded(value, None, place and f"{place}.0")]

    def arrived(self, entry: str, number: int, gradient: Tensor) -> Record:
        """The gradient of one of a call's outputs: a part of its backward's ``input``."""
        return self._guarded(gradient, None, self._place(entry, f"input.{number}"))

    def passed_on(self, entry: str, number: int, gradient: Tensor) -> Record:
        """The gradient of one of a call's inputs: a part of its backward's ``output``."""
        return self._guarded(gradient, None, self._place(entry, f"output.{number}"))

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

    def parameters(self, entry: str, module: nn.Module) -> dict[str, Record]:
        """``parameters``: those of the module itself, not of its children."""
        place = self._place(entry, "parameters")
        own = module.named_parameters(recurse=False, remove_duplicate=False)
        return {name: self._guarded(parameter, None, place and f"{place}.{name}") for name, parameter in own}

    def read(self) -> Readings:
        """The numbers of all tensors since the last read."""
        return self._contents.read()

    def finish(self) -> None:
        """The recording stops: write the files that are not on disk yet."""
        if self._files is not None:
            self._files.finish()

    def _place(self, entry: str, path: str) -> str:
        """Where in the dump something stands, for the names of files; empty where none are written."""
        if self._files is None or not self._files.takes(entry):
            return ""
        return f"{entry}.{path}" if path else entry

    def _guarded(self, value: object, keyword: str | None, place: str) -> Record:
        self._parts = 0
        try:
            return self._record(value, keyword, [], place)
        except Exception as error:
            self._problems.note("recording a value", error)
            return None

    # One frame per level of nesting, so that DEEPEST levels fit under Python's recursion limit: hence loops.
    def _record(self, value: object, keyword: str | None, around: list[int], place: str) -> Record:
        self._parts += 1
        if value is None:
            return None
        if isinstance(value, Tensor):
            return self._tensor(value, place)
        named = named_parts(value)
        listed = None if named is not None else listed_parts(value)
        if named is None and listed is None:
            record = scalar_record(value, keyword)
            return self._special(value, place) if record is None else record
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
        self.tensors += 1
        values = self._values(tensor)
        return TensorRecord(
            type_name=_type_name(tensor),
            dtype=str(tensor.dtype),
            shape=_known_lengths(tensor) if values is None else tuple(values.shape),
            taken=NOTHING if values is None else self._taken(values),
            requires_grad=tensor.requires_grad,
            placement=placement_of(tensor) if is_dtensor(tensor) else None,
            file=self._saved(values, place) if place and values is not None else None,
            contents=self._contents,
            number=self.tensors,
        )

    def _values(self, tensor: Tensor) -> Tensor | None:
        """The part of the tensor's values that is looked at."""
        try:
            values = plain_values(tensor)
            # What is cut out for each start is tokens, and a parameter has none.
            slices = self._slices if isinstance(tensor, nn.Parameter) else self._slices + self.further_slices
            return values if values is None or not slices else sliced(values, slices)
        except Exception as error:
            self._problems.note("measuring a tensor", error)
            return None

    def _taken(self, values: Tensor) -> Taken:
        try:
            return self._contents.take(values)
        except Exception as error:
            self._problems.note("measuring a tensor", error)
            return NOTHING

    def launch(self) -> None:
        """Take what is still to be taken of values that were recorded; the end of ``recording`` does."""
        try:
            self._contents.launch()
        except Exception as error:
            self._problems.note("measuring a tensor", error)

    def _saved(self, values: Tensor, place: str) -> TensorFile | None:
        try:
            return None if self._files is None else self._files.save(place, values)
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


class _Recording(AbstractContextManager[None]):
    """Entered by every hook, so no generator."""

    __slots__ = ("_apart", "_recorder")

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._apart = apart_from_the_run()

    def __enter__(self) -> None:
        self._apart.__enter__()

    def __exit__(self, *raised: Any) -> None:
        try:
            self._recorder.launch()
        finally:
            self._apart.__exit__(*raised)


def _type_name(tensor: Tensor) -> str:
    if is_dtensor(tensor):
        return "torch.distributed.tensor.DTensor"
    return "torch.nested._internal.nested_tensor.NestedTensor" if tensor.is_nested else "torch.Tensor"


def _known_lengths(tensor: Tensor) -> tuple[int | None, ...]:
    """The shape of a tensor without values: of a nested one, a length may be a symbol."""
    return tuple(length if isinstance(length, int) else None for length in tensor.shape)


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
