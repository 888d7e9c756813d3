"""A device called ``npu`` in pure Python, whose tensors keep their values on the host, and a stand-in for torch_npu.

It shows which operations run on which tensors, and what is waited for; not how quick or how exact an NPU is.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree
from torch.utils import backend_registration

from probe_patch.runtime.stats import plain

FRACTAL_NZ: Final = 29
_ND: Final = 2

_READS_ONE: Final = torch.ops.aten._local_scalar_dense.default


@dataclass
class Seen:
    """What ran since the last ``watch``.

    Attributes:
        on_private: operations on tensors in a private format, and on their views, but for ``detach``.
        waits: operations that bring values to the host.
        float64: operations that gave float64 on the device, which NPUs emulate.
    """

    on_private: list[str] = field(default_factory=list)
    waits: list[str] = field(default_factory=list)
    float64: list[str] = field(default_factory=list)


_seen = Seen()


class NpuTensor(Tensor):
    """A tensor on the device.

    Attributes:
        raw: its values, on the host.
        npu_format: torch_npu's number of its format.
    """

    raw: Tensor
    npu_format: int

    @staticmethod
    def __new__(cls, raw: Tensor, npu_format: int = _ND) -> "NpuTensor":
        made: NpuTensor = Tensor._make_wrapper_subclass(
            cls, raw.shape, raw.stride(), raw.storage_offset(), dtype=raw.dtype, device=torch.device("npu:0")
        )
        made.raw = raw
        made.npu_format = npu_format
        return made

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return _run(func, args, dict(kwargs or {}))


def _run(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    given = [part for part in pytree.tree_leaves((args, kwargs)) if isinstance(part, NpuTensor)]
    is_private = any(part.npu_format != _ND for part in given)
    if is_private and func is not torch.ops.aten.detach.default:
        _seen.on_private.append(str(func))
    target = kwargs.get("device")
    to_host = target is not None and torch.device(target).type == "cpu"
    to_host |= func is torch.ops.aten.copy_.default and not isinstance(args[0], NpuTensor)
    if to_host or func is _READS_ONE:
        _seen.waits.append(str(func))
    if target is not None:
        kwargs["device"] = torch.device("cpu")
    raw_args, raw_kwargs = pytree.tree_map_only(NpuTensor, lambda part: part.raw, (args, kwargs))
    found = func(*raw_args, **raw_kwargs)
    if to_host or func is _READS_ONE:
        return found
    changed = [argument.alias_info is not None and argument.alias_info.is_write for argument in func._schema.arguments]
    if any(changed):
        # What is changed in place is given back as itself.
        return kwargs["out"] if "out" in kwargs else args[changed.index(True)] if func._schema.returns else None
    npu_format = FRACTAL_NZ if is_private and (func.is_view or func is torch.ops.aten.detach.default) else _ND
    return pytree.tree_map_only(Tensor, lambda part: _on_device(part, npu_format), found)


def _on_device(raw: Tensor, npu_format: int) -> NpuTensor:
    if raw.dtype is torch.float64:
        _seen.float64.append("float64")
    return NpuTensor(raw, npu_format)


class _Backend(backend_registration._DummyBackendModule):
    def synchronize(self, device: object = None) -> None:
        _seen.waits.append("synchronize")


def install() -> None:
    """Once per process."""
    backend_registration._setup_privateuseone_for_python_backend("npu", backend_module=_Backend())
    library: Any = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    library.impl("empty.memory_format", _empty, "PrivateUse1")
    library.impl("empty_strided", _empty_strided, "PrivateUse1")
    _kept.append(library)
    torch_npu = ModuleType("torch_npu")
    torch_npu.get_npu_format = lambda tensor: tensor.npu_format  # type: ignore[attr-defined]
    sys.modules["torch_npu"] = torch_npu
    # A real NPU's tensors are plain ones, though these are not.
    plain.PLAIN_TYPES = plain.PLAIN_TYPES | {NpuTensor}  # type: ignore[misc]


_kept: list[torch.library.Library] = []


def _empty(size: Any, dtype: Any = None, layout: Any = None, device: Any = None, **_: Any) -> NpuTensor:
    return NpuTensor(torch.empty(size, dtype=dtype, device="cpu"))


def _empty_strided(size: Any, stride: Any, dtype: Any = None, layout: Any = None, device: Any = None, **_: Any) -> Any:
    return NpuTensor(torch.empty_strided(size, stride, dtype=dtype, device="cpu"))


@contextmanager
def watch() -> Iterator[Seen]:
    """What runs in the block."""
    global _seen
    before, _seen = _seen, Seen()
    try:
        yield _seen
    finally:
        _seen = before


def move(model: nn.Module, is_private: Callable[[str], bool] = lambda name: False) -> None:
    """Put the parameters on the device, some of them in a private format."""
    for prefix, module in model.named_modules():
        for name, parameter in list(module._parameters.items()):
            if parameter is not None:
                npu_format = FRACTAL_NZ if is_private(f"{prefix}.{name}") else _ND
                module._parameters[name] = nn.Parameter(NpuTensor(parameter.detach().clone(), npu_format))
