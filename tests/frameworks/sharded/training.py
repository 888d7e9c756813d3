"""A small model, spread over the ranks in each of torch's ways, and its training."""

from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn import functional

from tests.frameworks import fingerprints
from tests.frameworks.recording import STEPS, Around

WIDTH, TOKENS = 8, 16


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Any:
        return x + self.down(functional.gelu(self.up(x)))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, WIDTH)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(WIDTH, TOKENS)

    def forward(self, tokens: Tensor) -> Any:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def build(layout: str) -> nn.Module:
    """With the same weights at every call."""
    fingerprints.seed(7)
    model = Model()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    if layout == "DistributedDataParallel":
        return nn.parallel.DistributedDataParallel(model)
    if layout == "FullyShardedDataParallel":
        return FullyShardedDataParallel(model, device_id=torch.device("cpu"), use_orig_params=True)
    for block in model.blocks:
        if layout == "tensor parallel":
            parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
        for part in (block,) if layout == "fully_shard of blocks" else block.children():
            if layout != "tensor parallel":
                fully_shard(part, mesh=mesh)
    if layout != "tensor parallel":
        fully_shard(model, mesh=mesh)
    return model


def train(layout: str, around: Around = lambda model: nullcontext()) -> dict[str, Any]:
    """Train a new model; ``around`` is entered for the forward and backward pass of each step.

    Returns:
        Per step: digests of the output and of this rank's gradients and weights, the loss, and how many collectives
        ran; at the end the random states.
    """
    model = build(layout)
    fingerprints.seed(11)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    computed: dict[str, Any] = {name: [] for name in ("outputs", "losses", "gradients", "weights", "collectives")}
    for step in range(STEPS):
        optimizer.zero_grad()
        before = collectives()
        with around(model):
            tokens = torch.randint(TOKENS, (2, 4), generator=torch.Generator().manual_seed(_share(layout, step)))
            output = model(tokens)
            loss = functional.cross_entropy(output.flatten(0, 1), tokens.flatten())
            loss.backward()  # type: ignore[no-untyped-call]
        computed["collectives"].append(collectives() - before)
        computed["outputs"].append(fingerprints.digest([output]))
        computed["losses"].append(float(loss).hex())
        computed["gradients"].append(fingerprints.digest(_local(one.grad) for one in model.parameters()))
        optimizer.step()
        computed["weights"].append(fingerprints.digest(_local(one) for one in model.parameters()))
    return {**computed, "random": fingerprints.random_states()}


def collectives() -> int:
    """How many this rank has begun in its only group, by gloo's own count."""
    group: Any = dist.group.WORLD
    count: int = group._get_sequence_number_for_group()
    return count


def _share(layout: str, step: int) -> int:
    """Ranks that share tensors see the same tokens, others their own."""
    return step if layout == "tensor parallel" else 2 * step + dist.get_rank()


def _local(tensor: Tensor | None) -> Tensor | None:
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor
