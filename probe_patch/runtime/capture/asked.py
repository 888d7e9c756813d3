"""What is asked of each tensor by config.json: the numbers, the part, and whether the values are saved."""

from dataclasses import dataclass, field

from probe_patch.config import Config
from probe_patch.config.sections import NanCheckSection, Slice, StatisticsSection, SummaryMode, TensorSection
from probe_patch.config.sections import Number as ConfigNumber
from probe_patch.runtime.capture.contents import Contents, NumberName, Statistics, WithCrc, Xor
from probe_patch.runtime.problems import Problems

_EVERY_ENTRY = ("",)

_NAN_CHECK: tuple[ConfigNumber, ...] = ("max", "min", "mean", "norm", "nan_count", "inf_count")


@dataclass(frozen=True)
class Asked:
    """The values' side of a config.

    Attributes:
        summary: which numbers and checksums a record holds.
        slices: which part of each tensor is looked at.
        saved: parts of entry names; the tensors of entries that contain one are saved as files.
        held: whether these are held on the device until the recording stops, rather than written at once.
        tensor_mib: how many MiB of them one dump may have; None for all.
    """

    summary: SummaryMode | tuple[ConfigNumber, ...] = "statistics"
    slices: tuple[Slice, ...] = field(default=())
    saved: tuple[str, ...] = ()
    held: bool = False
    tensor_mib: int | None = None

    @classmethod
    def by(cls, config: Config) -> "Asked":
        return cls(
            _summary(config),
            tuple(config.values_section.slice),
            _saved(config),
            config.async_dump,
            config.limits.tensor_mib,
        )

    def contents(self, problems: Problems) -> Contents:
        """What the records of one dump hold of their tensors."""
        if self.summary == "statistics":
            return Statistics(problems)
        if self.summary == "md5":
            return WithCrc(Statistics(problems), problems)
        if self.summary == "xor":
            return Xor(problems)
        numbers = {number for name in self.summary if (number := _NUMBERS[name]) is not None}
        chosen = Statistics(problems, numbers)
        return WithCrc(chosen, problems) if "md5" in self.summary else chosen


_NUMBERS: dict[str, NumberName | None] = {
    "max": "max",
    "min": "min",
    "mean": "mean",
    "norm": "norm",
    "l2norm": "norm",
    "nan_count": "nan_count",
    "inf_count": "inf_count",
    "zero_count": "zero_count",
    "md5": None,
}


def _summary(config: Config) -> SummaryMode | tuple[ConfigNumber, ...]:
    section = config.task_section
    if isinstance(section, NanCheckSection):
        return _NAN_CHECK
    if not isinstance(section, StatisticsSection | TensorSection):
        return "statistics"
    return tuple(section.summary_mode) if isinstance(section.summary_mode, list) else section.summary_mode


def _saved(config: Config) -> tuple[str, ...]:
    section = config.task_section
    if isinstance(section, TensorSection):
        return _EVERY_ENTRY
    return tuple(section.tensor_list) if isinstance(section, StatisticsSection | NanCheckSection) else ()
