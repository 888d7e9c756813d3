"""Every key of msProbe's config.json (mindstudio-probe 26.2.0) by name and type, and ours.

What a key may ask for is in ``support``; here are only shapes, so that a wrong type and a missing feature are told
apart.
"""

from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from probe_patch.config.indexes import expand_indexes
from probe_patch.config.rollout import RolloutSection
from probe_patch.config.sections import (
    AccCheckSection,
    LoadSection,
    NanCheckSection,
    Section,
    StatisticsSection,
    TaskSection,
    TensorSection,
    ValuesSection,
)

Level: TypeAlias = Literal["L0", "L1", "L2", "mix", "debug"]
Task: TypeAlias = Literal[
    "statistics", "tensor", "acc_check", "structure", "diff_check", "nan_check", "exception_dump", "overflow_check"
]


def _index_list(value: object) -> object:
    if not isinstance(value, list):
        raise PydanticCustomError("index_list", 'must be a list such as [0, "3-5"]')
    for item in value:
        if isinstance(item, bool) or not isinstance(item, int | str):
            raise PydanticCustomError("index_list", 'may hold whole numbers and ranges like "3-5" only')
    return expand_indexes(value)


def _literal_path(value: str) -> str:
    if "\0" in value:
        raise ValueError("a path cannot hold the character NUL; leave it out")
    if value.startswith("~") or "$" in value:
        raise ValueError(f'"{value}" is taken literally; write the path in full')
    return value


Indexes: TypeAlias = Annotated[tuple[int, ...], BeforeValidator(_index_list)]
DumpPath: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(_literal_path)]


class LimitsSection(Section):
    """Ours: what one process may use for one dump; what goes beyond is left out, and said.

    Attributes:
        entries: how many entries are recorded.
        tensor_mib: how much tensors take on disk.
    """

    entries: int | None = Field(default=None, ge=1)
    tensor_mib: int | None = Field(default=None, ge=0)


class Config(Section):
    """A config.json. ``step`` and ``rank`` empty mean every step and every rank.

    Attributes:
        dump_enable: null leaves the dump to DUMP_ON; else the file is read again while the process runs, and this turns
            recording on and off.
        precision: msProbe's choice of how exactly it computes; ours are always computed as exactly as "high" promises.
        strict_json: ours: NaN and infinities are written as strings, which every JSON reader takes, not as msProbe's
            bare tokens.
    """

    task: Task = "statistics"
    dump_path: DumpPath
    rank: Indexes = ()
    step: Indexes = ()
    level: Level = "L1"
    extra_info: bool = True
    async_dump: bool = False
    dump_enable: bool | None = None
    precision: Literal["low", "high"] = "low"
    risk_level: Literal["ALL", "CORE", "FOCUS"] = "FOCUS"
    custom_op_namespaces: list[str] = Field(default=[])
    strict_json: bool = False
    load: LoadSection | None = None
    seed: int | None = None
    is_deterministic: bool = False
    enable_dataloader: bool = False
    statistics: StatisticsSection = StatisticsSection()
    tensor: TensorSection = TensorSection()
    structure: TaskSection = TaskSection()
    nan_check: NanCheckSection = NanCheckSection()
    acc_check: AccCheckSection = AccCheckSection()
    diff_check: Section = Section()
    exception_dump: Section = Section()
    overflow_check: Section = Section()
    limits: LimitsSection = LimitsSection()
    rollout: RolloutSection = RolloutSection()

    @property
    def task_section(self) -> TaskSection:
        """The section of the task; an empty one for tasks that are not served."""
        section = getattr(self, self.task)
        return section if isinstance(section, TaskSection) else TaskSection()

    @property
    def values_section(self) -> ValuesSection:
        """The same, as far as it says which values are looked at."""
        section = self.task_section
        return section if isinstance(section, ValuesSection) else ValuesSection()

    @property
    def selects_by_name(self) -> bool:
        """Whether names decide what is recorded; msProbe's risk levels then do not."""
        return bool(self.task_section.scope or self.task_section.list_)
