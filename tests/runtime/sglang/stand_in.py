"""The least of a ``ModelRunner`` that the probe needs: a model, settings, and forwards over batches."""

import enum
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor, nn

from probe_patch.runtime.sglang import Probe

ForwardMode = enum.IntEnum("ForwardMode", ["EXTEND", "DECODE", "MIXED", "IDLE", "TARGET_VERIFY", "DRAFT_EXTEND"])


@dataclass
class ServerArgs:
    model_path: str = "tiny"
    tp_size: int = 1
    dp_size: int = 1
    pp_size: int = 1
    node_rank: int = 0
    nnodes: int = 1
    host: str = "127.0.0.1"
    port: int = 30000
    enable_dp_attention: bool = False
    disaggregation_mode: str = "null"
    disable_cuda_graph: bool = True
    disable_radix_cache: bool = True


@dataclass
class ForwardBatch:
    forward_mode: enum.IntEnum
    input_ids: Tensor
    seq_lens: Tensor
    positions: Tensor
    extend_prefix_lens: Tensor | None = None
    rids: list[str] | None = None
    input_embeds: Tensor | None = None


class Model(nn.Module):
    """SGLang calls ``model.forward`` itself, so the root's own hooks never run."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(64, 4)
        self.mlp = nn.Linear(4, 4)

    def forward(self, input_ids: Tensor, positions: Tensor, forward_batch: ForwardBatch) -> Tensor:
        states: Tensor = self.mlp(self.embed(input_ids))
        return states


class PlainRunner:
    """As in 0.5.9, unpatched."""

    def __init__(
        self,
        gpu_id: int = 0,
        tp_rank: int = 0,
        server_args: ServerArgs | None = None,
        dp_rank: int | None = None,
        is_draft_worker: bool = False,
    ) -> None:
        self.server_args = server_args or ServerArgs()
        self.gpu_id = gpu_id
        self.tp_rank = tp_rank
        self.tp_size = self.server_args.tp_size
        self.dist_port = 28000
        self.is_draft_worker = is_draft_worker
        self.forward_pass_id = 0
        self.model: nn.Module = Model()

    def forward(self, forward_batch: ForwardBatch, skip_attn_backend_init: bool = False) -> Tensor:
        self.forward_pass_id += 1
        output: Tensor = self.model.forward(forward_batch.input_ids, forward_batch.positions, forward_batch)
        return output


def extend(tokens: int = 3, mode: str = "EXTEND", rids: list[str] | None = None) -> ForwardBatch:
    """One sequence whose prompt goes through the model at once."""
    return ForwardBatch(
        ForwardMode[mode],
        torch.arange(5, 5 + tokens),
        torch.tensor([tokens]),
        torch.arange(tokens),
        torch.tensor([0]),
        rids,
    )


def decode(sequences: int = 1) -> ForwardBatch:
    """The fourth token of some sequences."""
    return ForwardBatch(
        ForwardMode["DECODE"],
        torch.full((sequences,), 9),
        torch.full((sequences,), 4),
        torch.full((sequences,), 3),
    )


Runner = TypeVar("Runner", bound=PlainRunner)


def patched(runner_class: type[Runner]) -> type[Runner]:
    """The class as the patch leaves it, in a class of its own."""
    probe = Probe(None)
    members = {"__init__": probe.init(runner_class.__init__), "forward": probe.forward(runner_class.forward)}
    return type(runner_class.__name__, (runner_class,), members)
