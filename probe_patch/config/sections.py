"""The sections of msProbe's config.json (mindstudio-probe 26.2.0), one per task, by name and type."""

import re
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

DataMode: TypeAlias = Literal["all", "forward", "backward", "input", "output"]
Number: TypeAlias = Literal["max", "min", "mean", "norm", "l2norm", "nan_count", "inf_count", "zero_count", "md5"]
SummaryMode: TypeAlias = Literal["statistics", "md5", "xor"]

_ENTRY: Final = re.compile(r"(?P<module>Module\..+\.(forward|backward)\.\d+)|\w[\w.]*\.\d+\.(forward|backward)")


class Section(BaseModel):
    """Unknown keys are let through here: they become warnings, not errors."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


def _two_entries(scope: list[str]) -> list[str]:
    if len(scope) not in (0, 2):
        raise ValueError(f"must hold two entries, the first and the last one to record, not {len(scope)}")
    for entry in scope:
        if _ENTRY.fullmatch(entry) is None:
            raise ValueError(
                f'"{entry}" is no entry of a dump; write one such as "Module.layers.0.Block.forward.0" or '
                '"Functional.linear.0.forward"'
            )
    return scope


def _parts_of_names(parts: list[str]) -> list[str]:
    for part in parts:
        if not part or part.startswith("name-regex("):
            raise ValueError(f'"{part}" is no part of a name; write one such as "layers.0" or "linear"')
    return parts


def _modes_that_go_together(modes: list[DataMode]) -> list[DataMode]:
    if "all" in modes and len(modes) > 1:
        raise ValueError('"all" stands alone; leave out the others or leave out "all"')
    return modes


def _mode_or_numbers(value: object) -> object:
    # A union's own errors would speak of both of its sides.
    is_list = isinstance(value, list) and value and all(number in get_args(Number) for number in value)
    if not (is_list or value in get_args(SummaryMode)):
        modes, numbers = (", ".join(f'"{name}"' for name in get_args(names)) for names in (SummaryMode, Number))
        raise PydanticCustomError("summary_mode", f"must be one of {modes}, or a list of {numbers}")
    return value


Scope: TypeAlias = Annotated[list[str], AfterValidator(_two_entries)]
Parts: TypeAlias = Annotated[list[str], AfterValidator(_parts_of_names)]
DataModes: TypeAlias = Annotated[list[DataMode], AfterValidator(_modes_that_go_together)]


def is_module_entry(entry: str) -> bool:
    """Whether an entry of a scope is a module's."""
    match = _ENTRY.fullmatch(entry)
    return match is not None and match["module"] is not None


class Slice(Section):
    """Measure a part of each tensor: from ``begin`` to ``end`` along ``dim``, where that is ``size`` long, if given.

    As in Python, ``begin`` and ``end`` may be negative, and no ``end`` is the end.
    """

    dim: int = Field(default=0, ge=0)
    size: int | None = Field(default=None, ge=0)
    begin: int = 0
    end: int | None = None

    @model_validator(mode="after")
    def _leaves_some(self) -> "Slice":
        if not {"begin", "end"} & self.model_fields_set:
            raise ValueError("names no part; give begin, end, or both")
        if self.end is not None and (self.begin < 0) == (self.end < 0) and self.begin >= self.end:
            raise ValueError(f"leaves nothing between begin {self.begin} and end {self.end}; end is not included")
        return self


class TaskSection(Section):
    """What all tasks have in common: which entries are recorded, and what of them."""

    scope: Scope = []
    list_: Parts = Field(default=[], alias="list")
    data_mode: DataModes = ["all"]


class ValuesSection(TaskSection):
    """What tasks that look at numbers have besides.

    Attributes:
        slice: which part of each tensor is looked at.
        request_id: only the tokens of this request are; see ``PrecisionDebugger.start``.
    """

    slice: list[Slice] = []
    request_id: str | None = Field(default=None, min_length=1)


class StatisticsSection(ValuesSection):
    """Which numbers are taken, of what.

    Attributes:
        tensor_list: parts of entry names; the tensors of entries that contain one are saved too.
        summary_mode: statistics; statistics and a checksum (md5); a checksum alone (xor); or a list of numbers.
    """

    tensor_list: Parts = []
    summary_mode: Annotated[SummaryMode | list[Number], BeforeValidator(_mode_or_numbers)] = "statistics"
    device: str | None = None


class TensorSection(ValuesSection):
    """Tensors as files beside their statistics."""

    summary_mode: Literal["statistics", "md5"] = "statistics"
    bench_path: str | None = None
    diff_nums: int | None = None
    file_format: str | None = None


class NanCheckSection(ValuesSection):
    """Ours: which tensor was the first to hold a NaN or an infinity. msProbe's reads a register of NPUs."""

    tensor_list: Parts = []


class AccCheckSection(Section):
    """msProbe's task "acc_check"; read only to recognise its keys."""

    white_list: list[str] = []
    black_list: list[str] = []
    error_data_path: str = "./"


class LoadSection(Section):
    """msProbe's replacement of module inputs by dumped tensors; read only to recognise its keys."""

    path: str | None = None
    modules: list[str] = []
    step: list[Any] = []
    rank: list[Any] = []
    dump_after_load: bool | None = None
