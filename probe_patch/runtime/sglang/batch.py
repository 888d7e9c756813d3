"""What SGLang hands to ``ModelRunner.forward``, whatever the version calls it.

=============  ============================  ==========================================================
versions       the first argument            what is elsewhere
=============  ============================  ==========================================================
0.2.0-0.3.0    ``Batch``, ``ScheduleBatch``  the mode is the second argument; request ids are in ``reqs``;
                                             positions follow from lengths and offsets
0.3.1-0.3.2    ``ScheduleBatch``             as before, but it holds the mode
0.3.3-0.5.9    ``ForwardBatch``              request ids are not there
0.5.10 on      ``ForwardBatch``              request ids are ``rids``
=============  ============================  ==========================================================
"""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor

from probe_patch.runtime.stats.apart import ApartFromTheRun

UNKNOWN_MODE: Final = "UNKNOWN"

# Name in inputs.pt -> where the versions keep it, newest first.
_INPUTS: Final[Mapping[str, tuple[str, ...]]] = {
    "input_ids": ("input_ids",),
    "positions": ("positions",),
    "seq_lens": ("seq_lens",),
    "extend_seq_lens": ("extend_seq_lens", "extend_lens"),
    "extend_prefix_lens": ("extend_prefix_lens", "prefix_lens", "prefix_lens_cpu"),
}


@dataclass(frozen=True)
class Inputs:
    """What went into one forward.

    Attributes:
        by_embeddings: whether embeddings went in, so that the batch's token ids are only placeholders and left out.
        tensors: whole numbers of shape (tokens,) or (sequences,), by the names above; copies, on the batch's device.
        request_ids: of the sequences, in order; None where the version does not say.
    """

    tensors: Mapping[str, Tensor]
    request_ids: tuple[str, ...] | None
    by_embeddings: bool


def mode_of(batch: object, further: Sequence[object]) -> str:
    """The name of the batch's ``ForwardMode``; ``further`` are the forward's other arguments."""
    for candidate in (getattr(batch, "forward_mode", None), *further):
        name = getattr(candidate, "name", None)
        if isinstance(name, str):
            return name
    return UNKNOWN_MODE


def token_count(batch: object) -> int:
    """How many tokens go through the model; input embeddings and token ids may be there or not."""
    for name in ("input_ids", "input_embeds", "positions"):
        value = getattr(batch, name, None)
        if isinstance(value, Tensor):
            return value.shape[0] if name == "input_embeds" else value.shape[-1] if value.dim() else 1
    return 0


def copy_inputs(batch: object) -> Inputs:
    """Copy the small tensors before the forward may pad or change them."""
    with ApartFromTheRun():
        tensors = {name: tensor for name, places in _INPUTS.items() if (tensor := _first(batch, places)) is not None}
        if "positions" not in tensors and (derived := _derived_positions(batch, tensors)) is not None:
            tensors["positions"] = derived
    by_embeddings = isinstance(getattr(batch, "input_embeds", None), Tensor)
    if by_embeddings:
        tensors.pop("input_ids", None)
    return Inputs(tensors, _request_ids(batch), by_embeddings)


def _first(batch: object, places: Sequence[str]) -> Tensor | None:
    for place in places:
        value = getattr(batch, place, None)
        if isinstance(value, Tensor):
            return value.detach().clone()
        if isinstance(value, list) and value and all(isinstance(item, int) for item in value):
            return torch.tensor(value)
    return None


def _derived_positions(batch: object, tensors: Mapping[str, Tensor]) -> Tensor | None:
    """Before 0.3.3 the model's wrapper computed them from the lengths, as here."""
    ends, begins = tensors.get("seq_lens"), tensors.get("extend_prefix_lens")
    offsets = getattr(batch, "position_ids_offsets", None)
    if ends is None or not isinstance(offsets, Tensor):
        return None
    if begins is None or mode_of(batch, ()) == "DECODE":
        return ends - 1 + offsets
    rows = zip(begins.tolist(), ends.tolist(), offsets.tolist(), strict=True)
    return torch.cat([torch.arange(begin + offset, end + offset) for begin, end, offset in rows])


def _request_ids(batch: Any) -> tuple[str, ...] | None:
    with contextlib.suppress(Exception):
        listed = getattr(batch, "rids", None)
        if listed is None and getattr(batch, "reqs", None) is not None:
            listed = [request.rid for request in batch.reqs]
        if listed is not None:
            return tuple(str(name) for name in listed)
    return None
