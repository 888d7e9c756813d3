"""What a recording could leave in a process: hooks, modes, replaced functions, wrapped modules and parameters."""

import gc
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import distributed as dist
from torch import nn
from torch.distributed import distributed_c10d
from torch.nn import functional

HOOKS = tuple(name for name in vars(nn.Module()) if "hooks" in name)
NAMESPACES = {
    "torch": torch,
    "functional": functional,
    "Tensor": torch.Tensor,
    "distributed": dist,
    "c10d": distributed_c10d,
    "Module": nn.Module,
    "Work": dist.Work,
    "autograd": torch.autograd,
}


class Before:
    """The state before anything was recorded."""

    def __init__(self) -> None:
        self._functions = {name: list(_functions(space)) for name, space in NAMESPACES.items()}

    def left(self, models: Sequence[nn.Module]) -> list[str]:
        """What is not as it was before, in words; of the models, what carries anything of ours."""
        return [*self._replaced(), *_modes(), *_ours_on(models)]

    def _replaced(self) -> Iterator[str]:
        for space, functions in self._functions.items():
            now = {name: (value, code) for name, value, code in _functions(NAMESPACES[space])}
            for name, value, code in functions:
                if now.get(name, (None, None))[0] is not value:
                    yield f"{space}.{name} is another object"
                elif now[name][1] is not code:
                    yield f"{space}.{name} has other code"


def _functions(space: Any) -> Iterator[tuple[str, Any, Any]]:
    for name, value in list(vars(space).items()):
        if callable(value):
            yield name, value, getattr(value, "__code__", None)


def _modes() -> Iterator[str]:
    for stack in ("function", "dispatch"):
        depth = getattr(torch._C, f"_len_torch_{stack}_stack")()
        if depth:
            yield f"{depth} torch {stack} modes are on"


def _ours_on(models: Sequence[nn.Module]) -> Iterator[str]:
    for model in models:
        for name, module in model.named_modules():
            for field in HOOKS:
                yield from (f"{name}.{field}" for hook in _values(getattr(module, field)) if _is_ours(hook))
            if "forward" in vars(module) and _is_ours(vars(module)["forward"]):
                yield f"{name}.forward"
        for name, parameter in model.named_parameters():
            for field in ("_backward_hooks", "_post_accumulate_grad_hooks"):
                yield from (f"{name}.{field}" for hook in _values(getattr(parameter, field, None)) if _is_ours(hook))


def _values(hooks: Any) -> Sequence[Any]:
    return list((hooks or {}).values())


def _is_ours(hook: Any) -> bool:
    owner = hook if isinstance(hook, type) or hasattr(hook, "__qualname__") else type(hook)
    return str(getattr(owner, "__module__", "")).startswith("probe_patch")


def hooks_alive() -> list[str]:
    """The hook objects of ours that anything in the process still holds."""
    gc.collect()
    return sorted(
        {
            type(one).__qualname__
            for one in gc.get_objects()
            if type(one).__module__.startswith("probe_patch.runtime.capture") and callable(one)
        }
    )
