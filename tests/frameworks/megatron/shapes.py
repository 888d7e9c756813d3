"""The models that are trained, by what there is to see in them, and how: what a test needs without megatron-core."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

VOCABULARY, LENGTH, ROWS = 64, 8, 2


@dataclass(frozen=True)
class Shape:
    """A model and how it is trained.

    Attributes:
        tensor, pipeline, expert: how many ranks share a matrix, the layers, the experts.
        chunks: how many parts of the model a rank of the pipeline holds.
        experts: per layer; 0 for a dense model.
        packed: sequences of different lengths lie in a row.
        recompute: what the backward pass computes again.
        wrapped: in Megatron's own DistributedDataParallel.
        dropout: of the hidden states and, where it can be, of the attention.
    """

    tensor: int = 1
    pipeline: int = 1
    expert: int = 1
    chunks: int = 1
    layers: int = 2
    experts: int = 0
    micro_batches: int = 2
    packed: bool = False
    recompute: Literal["full", "selective"] | None = None
    wrapped: bool = False
    dropout: float = 0.1


SHAPES: Final[Mapping[str, Shape]] = {
    "tensor and sequence parallel": Shape(tensor=2),
    "packed sequences": Shape(tensor=2, packed=True),
    "full recomputation": Shape(tensor=2, recompute="full"),
    "selective recomputation": Shape(tensor=2, recompute="selective"),
    "experts in two groups": Shape(expert=2, experts=4),
    "experts and tensors in two groups": Shape(tensor=2, expert=2, experts=4),
    "data parallel": Shape(wrapped=True, micro_batches=1),
    "pipeline": Shape(pipeline=2, layers=4, micro_batches=3),
    "virtual pipeline": Shape(pipeline=2, chunks=2, layers=4, micro_batches=4),
}
