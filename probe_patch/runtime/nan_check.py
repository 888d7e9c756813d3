"""Task "nan_check": which entries hold a NaN or an infinity, and where the first one of each came up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from probe_patch.runtime.capture.forms import Record, TensorList, TensorRecord, tensor_records
from probe_patch.runtime.log import LOGGER

if TYPE_CHECKING:
    from collections.abc import Callable

    from probe_patch.runtime.capture.forms import TensorTexts

Entry: TypeAlias = "tuple[str, Record]"
Content: TypeAlias = Literal["finite", "inf", "nan"]

# A record's keys -> the first word of a tensor's place, as in the names of tensor files.
_SIDES: Final = {"input_args": "input", "input_kwargs": "kwargs", "output": "output", "parameters": "parameters"}
_FORWARD_GOES_IN: Final = ("input_args", "input_kwargs", "parameters")
_BACKWARD_GOES_IN: Final = ("input",)
_PARAMETERS_GRADIENT: Final = ".parameters_grad."


@dataclass(frozen=True)
class Culprit:
    """The first tensor that holds a NaN, or an infinity.

    Attributes:
        entry: the call, or its backward.
        tensor: where in it, such as ``output.0``.
        module: the entry of the innermost module around it; None outside of modules.
        rank: None for a process without one.
        went_in: what the call was given, parameters included; None where that was not recorded.
        born: whether it came out of a call that was given finite numbers only, and out of no call inside that one.
    """

    entry: str
    tensor: str
    module: str | None
    rank: int | None
    went_in: Content | None
    born: bool


class _Tensor(NamedTuple):
    """A tensor that is not finite. ``order`` sorts tensors by when they came to be."""

    order: tuple[int, int]
    entry: str
    key: str
    place: str
    has_nan: bool
    has_inf: bool


class NanCheck:
    """What one dump has found, over all its flushes."""

    def __init__(self, rank: int | None) -> None:
        self._rank = rank
        self._first_nan: Culprit | None = None
        self._first_inf: Culprit | None = None
        self._first_born: Culprit | None = None

    def members(self) -> Mapping[str, object]:
        """Members of meta.json."""
        found = {"first_nan": self._first_nan, "first_inf": self._first_inf, "first_born": self._first_born}
        return {"nan_check": {name: None if culprit is None else asdict(culprit) for name, culprit in found.items()}}

    def keep(
        self, finished: Sequence[Entry], texts: TensorTexts, module_of: Callable[[str], str | None]
    ) -> list[Entry]:
        """Those of these entries that hold a NaN or an infinity.

        Args:
            module_of: the entry of the innermost module around an entry.
        """
        tensors = {entry: list(_not_finite(entry, record, texts)) for entry, record in finished}
        self._find(_Findings(tensors, dict(finished), module_of, self._rank))
        return [(entry, record) for entry, record in finished if tensors[entry]]

    def _find(self, findings: _Findings) -> None:
        nan, inf = self._first_nan, self._first_inf
        self._first_nan = nan or findings.first(lambda tensor: tensor.has_nan)
        self._first_inf = inf or findings.first(lambda tensor: tensor.has_inf)
        self._first_born = self._first_born or findings.first_born()
        if nan is None and self._first_nan is not None:
            _tell("NaN", self._first_nan)
        # Masks are full of infinities that nobody need be warned of.
        if inf is None and self._first_inf is not None and self._first_inf.born:
            _tell("infinity", self._first_inf)


class _Findings:
    """The tensors of one flush that are not finite, by entry."""

    def __init__(
        self,
        tensors: Mapping[str, Sequence[_Tensor]],
        records: Mapping[str, Record],
        module_of: Callable[[str], str | None],
        rank: int | None,
    ) -> None:
        self._tensors = tensors
        self._records = records
        self._module_of = module_of
        self._rank = rank
        # Calls whose outputs are explained by something that happened inside of them.
        self._explained: set[str] = set()
        self._backwards: defaultdict[str, list[str]] = defaultdict(list)
        for entry in records:
            module, backward, _ = entry.rpartition(".backward.")
            if backward:
                self._backwards[module].append(entry)

        self._culprits = [(tensor, self._culprit(tensor)) for tensor in self._in_order()]

    def first(self, holds: Callable[[_Tensor], bool]) -> Culprit | None:
        """The first tensor of this kind."""
        return next((culprit for tensor, culprit in self._culprits if holds(tensor)), None)

    def first_born(self) -> Culprit | None:
        """The first one that was born."""
        return next((culprit for _, culprit in self._culprits if culprit.born), None)

    def _in_order(self) -> list[_Tensor]:
        return sorted(tensor for found in self._tensors.values() for tensor in found)

    def _culprit(self, tensor: _Tensor) -> Culprit:
        entry = tensor.entry
        went_in = self._went_in(entry)
        module = entry if entry.startswith("Module.") else self._module_of(entry)
        born = went_in == "finite" and entry not in self._explained
        if born or tensor.key == "parameters":
            self._explained.update(self._around(entry))
        return Culprit(entry, tensor.place, module, self._rank, went_in, born)

    def _around(self, entry: str) -> Iterator[str]:
        around = self._module_of(entry)
        while around is not None:
            yield around
            around = self._module_of(around)

    def _went_in(self, entry: str) -> Content | None:
        module, is_of_parameters, _ = entry.partition(_PARAMETERS_GRADIENT)
        if is_of_parameters:
            given = [self._given_to_backward(backward) for backward in self._backwards[module]]
            return None if not given or None in given else _worst([content for content in given if content is not None])
        return self._given(entry) if _is_forward(self._records[entry]) else self._given_to_backward(entry)

    def _given_to_backward(self, entry: str) -> Content | None:
        """What arrived, and what the call's forward had: its backward computes with that as well."""
        arrived = self._given(entry)
        forward = entry.replace(".backward", ".forward")
        if arrived != "finite" or forward not in self._records:
            return arrived if arrived != "finite" else None
        return _worst([_content(tensor) for tensor in self._tensors[forward]])

    def _given(self, entry: str) -> Content | None:
        record = self._records[entry]
        sides = _FORWARD_GOES_IN if _is_forward(record) else _BACKWARD_GOES_IN
        if not isinstance(record, Mapping) or sides[0] not in record:
            return None
        return _worst([_content(tensor) for tensor in self._tensors[entry] if tensor.key in sides])


def _is_forward(record: Record) -> bool:
    return isinstance(record, Mapping) and ("input_args" in record or "parameters" in record)


def _worst(contents: Iterable[Content]) -> Content:
    found = set(contents)
    return "nan" if "nan" in found else "inf" if "inf" in found else "finite"


def _content(tensor: _Tensor) -> Content:
    return "nan" if tensor.has_nan else "inf"


def _not_finite(entry: str, record: Record, texts: TensorTexts) -> Iterator[_Tensor]:
    if not isinstance(record, Mapping):
        return
    outputs = [tensor.number for _, tensor in _tensors(record.get("output"), "")]
    for key, value in record.items():
        for place, tensor in _tensors(value, _SIDES.get(key, key)):
            counts = texts.counts(tensor)
            if counts is not None and (counts.nan or counts.infinite):
                # Parameters are recorded last, but were there before the outputs.
                is_earlier = key == "parameters" and outputs
                order = (min(outputs), 0) if is_earlier else (tensor.number, 1)
                yield _Tensor(order, entry, key, place, counts.nan > 0, counts.infinite > 0)


def _tensors(value: Record, place: str) -> Iterator[tuple[str, TensorRecord]]:
    if isinstance(value, TensorList):
        value = tensor_records(value)
    if isinstance(value, TensorRecord):
        yield place, value
    elif isinstance(value, Mapping):
        for name, part in value.items():
            yield from _tensors(part, f"{place}.{name}")
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for index, part in enumerate(value):
            yield from _tensors(part, f"{place}.{index}")


def _tell(what: str, culprit: Culprit) -> None:
    where = "" if culprit.module in (None, culprit.entry) else f", in {culprit.module}"
    origin = {
        "finite": "what went into that call was finite, so it was born there",
        "inf": "an infinity had gone into that call",
        "nan": "a NaN had gone into that call",
        None: "what went into that call was not recorded",
    }[culprit.went_in]
    LOGGER.warning(
        "probe-patch: the first %s%s is %s of %s%s: %s",
        what,
        "" if culprit.rank is None else f" on rank {culprit.rank}",
        culprit.tensor,
        culprit.entry,
        where,
        origin,
    )
