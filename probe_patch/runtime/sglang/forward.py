"""One recorded forward: what its meta.json says, and the file of its inputs."""

import hashlib
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import torch
from torch import Tensor

from probe_patch.config.rollout import RecordedInputs
from probe_patch.dump_format import INPUTS_FILE
from probe_patch.runtime.sglang.batch import Inputs
from probe_patch.runtime.sglang.engine import Engine, ModelState

NOTHING_RAN: Final = (
    "no module's forward ran: a CUDA graph replay or a compiled model runs without modules; start the server with the "
    "flags that probe-patch launch-args prints"
)


@dataclass(frozen=True)
class RecordedForward:
    """A forward of an inference engine, as ``runtime.occasion.Occasion``.

    Attributes:
        state: reads the runner once the forward is over.
        skipped: how many forwards of this process did not count before this one, by reason.
        last: whether ``max_forwards`` ends the recording with this forward.
    """

    mode: str
    tokens: int
    state: Callable[[], ModelState]
    inputs: Inputs
    record_inputs: RecordedInputs
    engine: Engine
    skipped: Mapping[str, int]
    last: bool
    ends_by_itself: bool = field(default=True, init=False)
    nothing_ran: str = field(default=NOTHING_RAN, init=False)

    def members(self) -> Mapping[str, object]:
        state = self.state()
        return {
            "phase": "rollout",
            "forward": {
                "forward_pass_id": state.forward_pass_id,
                "mode": self.mode,
                "tokens": self.tokens,
                "request_ids": self.inputs.request_ids,
                "input_embeds": self.inputs.by_embeddings,
                "model_path": state.model_path,
                "weight_version": state.weight_version,
                **self._lengths(),
                **self._hashes(),
                "max_forwards_reached": self.last,
            },
            "engine": self.engine.members(),
            "skipped": dict(self.skipped),
        }

    def files(self) -> Mapping[str, bytes]:
        """``inputs.pt``: whole-number tensors by name, readable with ``torch.load(…, weights_only=True)``."""
        if self.record_inputs != "tensor":
            return {}
        buffer = io.BytesIO()
        torch.save(self._on_host, buffer)
        return {INPUTS_FILE: buffer.getvalue()}

    @cached_property
    def _on_host(self) -> dict[str, Tensor]:
        return {name: tensor.cpu() for name, tensor in self.inputs.tensors.items()}

    def _lengths(self) -> dict[str, object]:
        return {name: tensor.tolist() for name, tensor in self._on_host.items() if name.endswith("_lens")}

    def _hashes(self) -> dict[str, object]:
        if self.record_inputs == "none":
            return {}
        names = [name for name in self._on_host if not name.endswith("_lens")]
        return {name: _fingerprint(self._on_host[name]) for name in names}


def _fingerprint(tensor: Tensor) -> dict[str, object]:
    """The SHA-256 of the values as little-endian int64, in C order."""
    numbers = tensor.to(torch.int64).contiguous().numpy().astype("<i8").tobytes()
    return {"shape": list(tensor.shape), "sha256": hashlib.sha256(numbers).hexdigest()}
