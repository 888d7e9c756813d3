"""A model that passes all kinds of values around, run once per config while a debugger records it.

python values_program.py DEBUGGER_MODULE CONFIG...
"""

import importlib
import os
import sys
from collections import namedtuple
from typing import Any

import torch
from torch import Tensor, nn

Pair = namedtuple("Pair", ["left", "right"])


class Exchange(nn.Module):
    """Takes nested arguments and gives back nested values of many dtypes."""

    def forward(self, x: Tensor, parts: list[Tensor], options: dict[str, Any], pair: Any = None) -> Any:
        return (
            (x.half(), [x.bfloat16(), x.double()]),
            {"inner": {"t": x.t()}, "index": torch.arange(3)},
            pair,
            x > 0,
            torch.complex(x, x),
            x.sum(),
            torch.tensor(5),
            torch.empty(0, 2),
            None,
            "text",
        )


class Named(nn.Module):
    def forward(self, x: Tensor) -> Any:
        return Pair(x[:, ::2], (x[0], None))


class Values(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 4)
        self.exchange = Exchange()
        self.named = Named()
        self.last = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Any:
        x = self.first(x)
        self.exchange(
            x.detach(), [x.detach(), x.detach() * 2], {"t": x.detach(), "deep": [1, x.detach()]}, pair=(x.detach(), 2)
        )
        self.named(x.detach())
        return self.last(x)


def record(debugger_class: Any, config: str) -> None:
    debugger = debugger_class(config_path=config)
    torch.manual_seed(0)
    model, x = Values(), torch.linspace(-1, 1, 18).reshape(3, 6)
    debugger.start(model)
    model(x).square().sum().backward()
    debugger.stop()
    debugger.step()


def main(debugger_module: str, *configs: str) -> None:
    """Each in a process of its own, as msProbe's debugger is one per process, but imported once."""
    debugger_class = importlib.import_module(debugger_module).PrecisionDebugger
    for config in configs:
        child = os.fork()
        if child == 0:
            record(debugger_class, config)
            sys.exit()
        if os.waitpid(child, 0)[1] != 0:
            sys.exit(f"failed with {config}")


if __name__ == "__main__":
    main(*sys.argv[1:])
