"""What went into and came out of every module of a model, measured without probe-patch."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from tests.real_sglang.report import Measured, Statistics


@contextmanager
def measuring(model: torch.nn.Module) -> Iterator[list[Measured]]:
    """A list that grows by one record per call of a sub-module, in the order in which the calls end."""
    records: list[Measured] = []
    open_calls: list[tuple[str, tuple[Statistics | None, ...]]] = []
    calls: dict[str, int] = {}

    def before(name: str) -> Any:
        def hook(module: torch.nn.Module, inputs: tuple[object, ...]) -> None:
            count = calls.get(name, 0)
            calls[name] = count + 1
            open_calls.append((f"Module.{name}.{type(module).__name__}.forward.{count}", _all_statistics(inputs)))

        return hook

    def after(module: torch.nn.Module, inputs: object, output: object) -> None:
        name, measured = open_calls.pop()
        outputs = output if isinstance(output, tuple) else (output,)
        records.append(Measured(name, open_calls[-1][0] if open_calls else None, measured, _all_statistics(outputs)))

    handles = [
        handle
        for name, module in model.named_modules()
        if name
        for handle in (module.register_forward_pre_hook(before(name)), module.register_forward_hook(after))
    ]
    try:
        yield records
    finally:
        for handle in handles:
            handle.remove()


def _all_statistics(values: tuple[object, ...]) -> tuple[Statistics | None, ...]:
    return tuple(_statistics(value) if isinstance(value, torch.Tensor) else None for value in values)


def _statistics(tensor: torch.Tensor) -> Statistics:
    exact = tensor.detach().double()
    return Statistics(
        tuple(tensor.shape), exact.max().item(), exact.min().item(), exact.mean().item(), exact.norm().item()
    )
