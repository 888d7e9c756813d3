"""A program per thing that a recorder can get wrong, each one step of one debugger; for msProbe's and for ours.

python catalogue_program.py DEBUGGER_MODULE RENDEZVOUS RANK WORLD_SIZE CONFIG…
"""

import importlib
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from tests.runtime.toy_program import Block, Toy

Program: TypeAlias = tuple[Any, Callable[[], Any]]
"""What is recorded, and what runs."""


def toy() -> Program:
    """Nested modules, keyword arguments, in-place modules, operators."""
    model, tokens, targets = Toy(), torch.arange(4), torch.arange(1, 5)

    def run() -> None:
        F.cross_entropy(model(tokens), targets).backward()  # type: ignore[no-untyped-call]

    return model, run


class Takes(nn.Module):
    """Whatever it is given, it uses what it can calculate with and gives the rest back."""

    def forward(self, values: dict[str, Any], *more: Any, **named: Any) -> Any:
        x = values["float32"]
        return {"sum": x + values["bfloat16"].float(), "pair": (more, named)}


class TakesAll(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Takes()

    def forward(self) -> Any:
        values = {
            "float32": torch.linspace(-1, 2, 6),
            "bfloat16": torch.linspace(-1, 2, 6).to(torch.bfloat16),
            "float16": torch.linspace(-1, 2, 6).to(torch.float16),
            "float8": torch.linspace(-1, 2, 6).to(torch.float8_e4m3fn),
            "complex": torch.complex(torch.arange(3.0), torch.ones(3)),
            "int": torch.arange(-2, 5),
            "bool": torch.tensor([True, False]),
            "empty": torch.zeros(0, 4),
            "zero-d": torch.tensor(2.5),
            "nan": torch.tensor([1.0, float("nan")]),
            "infinite": torch.tensor([1.0, float("inf")]),
        }
        given = self.inner(values, 1, 2.5, "text", None, [True, (3,)], key={"deep": values["int"]}, size=slice(1, 2))
        return (
            torch.add(given["sum"], 1, alpha=2),
            torch.abs(values["complex"]),
            torch.sum(values["int"], dim=0, keepdim=True),
            torch.logical_not(input=values["bool"]),
            values["nan"] * 2,
            values["empty"].sum(1),
            F.softmax(values["float32"], dim=0),
            F.layer_norm(values["float32"], [6], eps=1e-3),
            F.dropout(values["float32"], 0.5, training=False),
            F.pad(values["float32"], (1, 2), value=3.0),
            F.max_pool1d(values["float32"][None], 2, stride=2),
            torch.split(values["float32"], 2),
            values["float32"].norm(p=1),
        )


def values() -> Program:
    """All kinds of values, in all kinds of containers."""
    model = TakesAll()
    return model, model


class Checkpointed(nn.Module):
    def __init__(self, use_reentrant: bool) -> None:
        super().__init__()
        self.before, self.block, self.after = nn.Linear(8, 8), Block(), nn.Linear(8, 8)
        self.use_reentrant = use_reentrant

    def forward(self, x: Tensor) -> Any:
        return self.after(checkpoint(self.block, self.before(x), use_reentrant=self.use_reentrant))


def checkpointed(use_reentrant: bool) -> Program:
    model = Checkpointed(use_reentrant)
    return model, lambda: model(torch.linspace(-1, 1, 32).view(4, 8)).sum().backward()


def data_parallel() -> Program:
    """A wrapper around the model."""
    model = DistributedDataParallel(Block())
    return model, lambda: model(torch.linspace(-1, 1, 32).view(4, 8)).sum().backward()


def chunks() -> Program:
    """A list of virtual-pipeline chunks."""
    models = [nn.Sequential(nn.Linear(8, 8)), nn.Sequential(nn.Linear(8, 8), nn.GELU())]
    return models, lambda: models[1](models[0](torch.linspace(-1, 1, 32).view(4, 8))).sum().backward()


class Communicates(nn.Module):
    def forward(self, x: Tensor) -> Any:
        rank, size = dist.get_rank(), dist.get_world_size()
        total = x.detach() * (rank + 1)
        dist.all_reduce(total)
        parts = [torch.zeros_like(total) for _ in range(size)]
        work: Any = dist.all_gather(parts, total, async_op=True)
        work.wait()
        dist.broadcast(tensor=total, src=0)
        whole, piece = torch.zeros(4 * size), torch.zeros(4)
        dist.all_gather_into_tensor(whole, total)
        dist.reduce_scatter_tensor(piece, whole, op=dist.ReduceOp.SUM)
        if size > 1:
            received = torch.zeros(4)
            operations = [dist.P2POp(dist.isend, piece, 1 - rank), dist.P2POp(dist.irecv, received, 1 - rank)]
            for one in dist.batch_isend_irecv(operations):
                one.wait()
        return x + piece


def communication() -> Program:
    """Collectives inside a module."""
    model = nn.Sequential(Communicates())
    return model, lambda: model(torch.linspace(-1, 1, 4))


LIBRARY: Any = torch.library.Library("probe_patch_catalogue", "DEF")  # type: ignore[no-untyped-call]
LIBRARY.define("scaled(Tensor x, float by=2.0) -> Tensor")
LIBRARY.impl("scaled", lambda x, by=2.0: x * by, "CompositeExplicitAutograd")


class UsesOperators(nn.Module):
    def forward(self, x: Tensor) -> Any:
        x = torch.ops.probe_patch_catalogue.scaled(torch.ops.probe_patch_catalogue.scaled(x), by=0.5)
        return F.layer_norm(x, (4,))


def custom_operators() -> Program:
    """Operators that torch does not bring itself."""
    model = nn.Sequential(UsesOperators())
    return model, lambda: model(torch.linspace(-1, 1, 4))


PROGRAMS: dict[str, Callable[[], Program]] = {
    "toy": toy,
    "values": values,
    "checkpointed": lambda: checkpointed(use_reentrant=False),
    "checkpointed, reentrant": lambda: checkpointed(use_reentrant=True),
    "data parallel": data_parallel,
    "chunks": chunks,
    "communication": communication,
    "custom operators": custom_operators,
}


def main(debugger_module: str, rendezvous: str, rank: str, world_size: str, *configs: str) -> None:
    dist.init_process_group(
        "gloo",
        init_method=f"file://{rendezvous}",
        rank=int(rank),
        world_size=int(world_size),
        timeout=timedelta(seconds=100),
    )
    debugger_class = importlib.import_module(debugger_module).PrecisionDebugger
    for config in configs:
        debugger = debugger_class(config_path=config)
        for program in PROGRAMS.values():
            torch.manual_seed(0)
            model, run = program()
            debugger.start(model)
            run()
            debugger.stop()
            debugger.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
