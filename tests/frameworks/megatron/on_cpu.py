"""What megatron-core needs to run without CUDA, Transformer Engine or Apex; none of it changes what is computed.

Call ``stand_in`` once per process, before a model is built.
"""

from typing import Any

import torch
from megatron.core.pipeline_parallel import schedules
from megatron.core.tensor_parallel import random as parallel_random
from megatron.core.transformer.dot_product_attention import DotProductAttention
from megatron.core.transformer.moe import moe_utils
from torch import Tensor


class _TorchOnCpu:
    """The schedules' view of torch: they count tokens in a tensor on ``cuda``."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    @staticmethod
    def zeros(*size: Any, device: object, **options: Any) -> Tensor:
        return torch.zeros(*size, **options)


def stand_in() -> None:
    """Allocations go to the CPU, and the random states of a device are those of none.

    Megatron's tracker for inference does not switch between generators, so dropout draws from torch's only one.
    """
    torch.cuda.current_device = lambda: torch.device("cpu")  # type: ignore[assignment,return-value]
    schedules.torch = _TorchOnCpu()
    parallel_random.initialize_rng_tracker(inference_rng_tracker=True)
    parallel_random._get_cuda_rng_state = lambda *_, **__: torch.empty(0)
    parallel_random._set_cuda_rng_state = lambda *_, **__: None
    if not hasattr(moe_utils, "te_general_gemm"):
        moe_utils.te_general_gemm = None


class Norm(torch.nn.RMSNorm):
    """Built as Megatron builds norms, and marked for the reduction that sequence parallelism needs."""

    def __init__(self, config: Any, hidden_size: int, eps: float = 1e-6) -> None:
        super().__init__(hidden_size, eps=eps)
        self.weight.sequence_parallel = config.sequence_parallel  # type: ignore[attr-defined]


class PackedAttention(DotProductAttention):  # type: ignore[misc]
    """Attention within each of several sequences that lie in a row; query, key and value are [T, heads, d]."""

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, attention_mask: Any, packed_seq_params: Any = None, **rest: Any
    ) -> Any:
        if packed_seq_params is None:
            return super().forward(query, key, value, attention_mask, **rest)
        positions = torch.arange(query.shape[0])
        sequence = torch.searchsorted(packed_seq_params.cu_seqlens_q.long(), positions, right=True)
        may_see = (sequence[:, None] == sequence[None, :]) & (positions[:, None] >= positions[None, :])
        rows = [part.unsqueeze(1) for part in (query, key, value)]
        return super().forward(*rows, ~may_see[None, None], **rest)
