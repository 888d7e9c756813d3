"""Every key of msProbe's config.json (mindstudio-probe 26.2.0) by name and type, and our own ``rollout`` section.

What a key may ask for today is in ``support``; here are only shapes, so that a wrong type and a missing feature
are told apart.
"""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from probe_patch.config.indexes import expand_indexes
from probe_patch.dump_format import PdRole

Level: TypeAlias = Literal["L0", "L1", "L2", "mix", "debug"]
Task: TypeAlias = Literal[
    "statistics", "tensor", "acc_check", "structure", "diff_check", "nan_check", "exception_dump", "overflow_check"
]
DataMode: TypeAlias = Literal["all", "forward", "backward", "input", "output"]
ForwardKind: TypeAlias = Literal["extend", "decode", "all"]
RecordedInputs: TypeAlias = Literal["tensor", "hash", "none"]


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


class _Section(BaseModel):
    """Unknown keys are let through here: they become warnings, not errors."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class Slice(_Section):
    """A part of a tensor to measure: ``size`` consecutive items along ``dim``, from ``begin`` to ``end``."""

    dim: int | None = None
    size: int | None = None
    begin: int | None = None
    end: int | None = None


class StatisticsSection(_Section):
    """Which numbers are taken, of what."""

    scope: list[str] = []
    list_: list[str] = Field(default=[], alias="list")
    tensor_list: list[str] = []
    data_mode: list[DataMode] = ["all"]
    summary_mode: str | list[str] = "statistics"
    slice: list[Slice] = []
    request_id: str | int | None = None
    device: str | None = None


class TensorSection(_Section):
    """msProbe's task "tensor"; read only to recognise its keys."""

    scope: list[str] = []
    list_: list[str] = Field(default=[], alias="list")
    data_mode: list[DataMode] = ["all"]
    summary_mode: str | list[str] | None = None
    slice: list[Slice] = []
    request_id: str | int | None = None
    bench_path: str | None = None
    diff_nums: int | None = None
    file_format: str | None = None


class AccCheckSection(_Section):
    """msProbe's task "acc_check"; read only to recognise its keys."""

    white_list: list[str] = []
    black_list: list[str] = []
    error_data_path: str = "./"


class LoadSection(_Section):
    """msProbe's replacement of module inputs by dumped tensors; read only to recognise its keys."""

    path: str | None = None
    modules: list[str] = []
    step: int | None = None
    rank: int | None = None
    dump_after_load: bool | None = None


class ForwardsSection(_Section):
    """Ours: which forward passes of an inference server count.

    Attributes:
        modes: extend (prompts, or parts of them), decode (a token per sequence), or all that run the model.
        min_tokens: extend forwards of fewer tokens do not count; health probes and cache hits have one.
        max_forwards: how many forwards a process records at most; null for no limit.
    """

    modes: list[ForwardKind] = Field(default=["extend"], min_length=1)
    min_tokens: int = Field(default=2, ge=1)
    max_forwards: int | None = Field(default=None, ge=1)


class RolloutSection(ForwardsSection):
    """Ours: what is recorded on the inference side.

    Attributes:
        inputs: token ids, positions and lengths as a tensor file (inputs.pt), as hashes in meta.json, or not at all.
        draft: whether the draft models of speculative decoding are recorded too.
        prefill, decode: what else holds for the prefill and the decode servers of a disaggregated setup.
    """

    inputs: RecordedInputs = "tensor"
    draft: bool = False
    prefill: ForwardsSection = ForwardsSection()
    decode: ForwardsSection = ForwardsSection()

    def for_role(self, role: PdRole) -> ForwardsSection:
        """What holds for a server of this role: the keys of its own section, else those of this one.

        A decode server runs no extend forwards, so ``["extend"]`` from here would record nothing there: unless its own
        section names modes, it then stands for its decode forwards.
        """
        own = {"null": ForwardsSection(), "prefill": self.prefill, "decode": self.decode}[role]
        merged = self.model_dump(include=set(ForwardsSection.model_fields)) | own.model_dump(exclude_unset=True)
        if role == "decode" and "modes" not in own.model_fields_set and merged["modes"] == ["extend"]:
            merged["modes"] = ["decode"]
        return ForwardsSection.model_validate(merged)


class Config(_Section):
    """A config.json. ``step`` and ``rank`` empty mean every step and every rank."""

    task: Task = "statistics"
    dump_path: Annotated[str, Field(min_length=1), AfterValidator(_literal_path)]
    rank: Indexes = ()
    step: Indexes = ()
    level: Level = "L0"
    extra_info: bool = True
    async_dump: bool = False
    dump_enable: bool | None = None
    precision: Literal["low", "high"] = "high"
    risk_level: Literal["ALL", "CORE", "FOCUS"] = "FOCUS"
    custom_op_namespaces: list[str] = []
    load: LoadSection | None = None
    seed: int | None = None
    is_deterministic: bool = False
    enable_dataloader: bool = False
    statistics: StatisticsSection = StatisticsSection()
    tensor: TensorSection = TensorSection()
    acc_check: AccCheckSection = AccCheckSection()
    structure: dict[str, Any] = {}
    diff_check: dict[str, Any] = {}
    nan_check: dict[str, Any] = {}
    exception_dump: dict[str, Any] = {}
    overflow_check: dict[str, Any] = {}
    rollout: RolloutSection = RolloutSection()
