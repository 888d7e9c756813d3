"""Who this process is: its rank, and where it stands in each parallel group."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from probe_patch.dump_format import process_folder, rank_folder


@dataclass(frozen=True)
class GroupPlace:
    """The rank in one parallel group, and the group's size."""

    rank: int
    size: int


@dataclass(frozen=True)
class Identity:
    """A process: ``rank`` and ``world_size`` are None where nothing gives them; ``places`` is by group (tp, pp, …)."""

    rank: int | None
    world_size: int | None
    places: Mapping[str, GroupPlace] = field(default_factory=dict)

    @property
    def rank_for_filter(self) -> int:
        """A process without a rank is the only one, so a ``rank`` list takes it for rank 0."""
        return 0 if self.rank is None else self.rank

    @property
    def folder(self) -> str:
        return process_folder(os.getpid()) if self.rank is None else rank_folder(self.rank)


# The functions of megatron.core.parallel_state are get_{name}_rank and get_{name}_world_size.
_GROUPS: Final[Mapping[str, str]] = {
    "tp": "tensor_model_parallel",
    "pp": "pipeline_model_parallel",
    "dp": "data_parallel",
    "cp": "context_parallel",
    "ep": "expert_model_parallel",
}


def identify(rank_id: int | None) -> Identity:
    """The rank the caller gives, else torch.distributed's, else the environment's ``RANK``, else none."""
    distributed = sys.modules.get("torch.distributed")
    in_group = distributed is not None and distributed.is_available() and distributed.is_initialized()
    if distributed is not None and in_group:
        rank = distributed.get_rank() if rank_id is None else rank_id
        return Identity(rank, distributed.get_world_size(), parallel_places())
    rank = _whole_number(os.environ.get("RANK")) if rank_id is None else rank_id
    return Identity(rank, _whole_number(os.environ.get("WORLD_SIZE")), parallel_places())


def parallel_places() -> dict[str, GroupPlace]:
    """tp, pp, dp, cp and ep places, as far as this process has initialised Megatron's groups; never imports it."""
    state = sys.modules.get("megatron.core.parallel_state")
    if state is None:
        return {}
    places = {name: _place(state, group) for name, group in _GROUPS.items()}
    return {name: place for name, place in places.items() if place is not None}


def _place(state: Any, group: str) -> GroupPlace | None:
    try:
        if not state.model_parallel_is_initialized():
            return None
        rank, size = getattr(state, f"get_{group}_rank")(), getattr(state, f"get_{group}_world_size")()
    except Exception:  # an older Megatron lacks the function, or the group was not set up
        return None
    return GroupPlace(int(rank), int(size))


def _whole_number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
