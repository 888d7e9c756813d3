"""What a function is called in a dump: ``Functional.linear``, ``Tensor.__add__``, ``Torch.linalg.norm``."""

from __future__ import annotations

from types import BuiltinFunctionType, FunctionType, MethodDescriptorType, WrapperDescriptorType
from typing import TYPE_CHECKING, Any, Final

import torch
from torch.overrides import resolve_name

from probe_patch.runtime.capture.functions.custom_operators import NPU, CustomOperator, custom_operator
from probe_patch.runtime.capture.functions.handed_on import PassedArguments
from probe_patch.runtime.capture.functions.risk import RiskLevel, is_recorded
from probe_patch.runtime.capture.names import FunctionName

if TYPE_CHECKING:
    from collections.abc import Callable

_PREFIXES: Final = (
    ("torch.nn.functional.", "Functional"),
    ("torch.Tensor.", "Tensor"),
    ("torch.functional.", "Torch"),
    ("torch.", "Torch"),
)

# Of the functions that torch documents nowhere: those optimizers call.
_INTERNAL: Final = ("_foreach_", "_fused_")

# They ask a tensor about itself, or prepare it for Python: nothing is computed.
_QUERIES: Final = frozenset(
    """
    __contains__ __deepcopy__ __dlpack__ __dlpack_device__ __format__ __index__ __int__ __float__ __complex__
    __len__ __long__ __reduce_ex__ __repr__ __reversed__ __setstate__ __array__ __array_wrap__ __iter__
    __hash__ __dir__ _is_view _dimI _dimV _nnz _indices _values apply_ backward const_data_ptr data_ptr
    dense_dim detach detach_ dim dim_order element_size get_device has_names is_coalesced is_complex is_conj
    is_contiguous is_distributed is_floating_point is_inference is_neg is_nonzero is_pinned is_same_size
    is_set_to is_shared is_signed item ndimension nelement numel pin_memory q_per_channel_axis
    q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point qscheme record_stream register_hook
    register_post_accumulate_grad_hook requires_grad_ retain_grad share_memory_ size sparse_dim storage
    storage_offset storage_type stride tolist type untyped_storage is_autocast_enabled result_type can_cast
    promote_types is_tensor is_storage device
    """.split()  # noqa: SIM905
)

_UNKNOWN: Final = object()

_IN_C: Final = (BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType)

_COMPARISONS: Final = frozenset(("lt", "le", "gt", "ge", "ne"))


_PLACES: Final = {
    torch.nn.functional: ("torch.nn.functional", "torch._C._nn"),
    torch.functional: ("torch.functional",),
    torch: ("torch",),
}
"""Where torch's functions are, and the modules that they say they are from."""


class Label:
    """What the calls of one function that is recorded are called.

    Attributes:
        name: where it is called by its name.
        may_be_operator: whether it is a method of tensors, which an operator may call.
        is_in_c: whether it is one of torch's functions in C.
        passed: what its callers pass; None of a function in C, whose calls are seen as they were made.
    """

    __slots__ = ("_by_operator", "_own", "is_in_c", "may_be_operator", "name", "passed")

    def __init__(
        self, name: FunctionName, own: str | None, passed: PassedArguments | None, is_in_c: bool = False
    ) -> None:
        """``own`` is the name of a method of tensors."""
        self.name = name
        self.may_be_operator = own is not None
        self.passed = passed
        self.is_in_c = is_in_c
        self._own = own
        self._by_operator: dict[str, FunctionName | None] = {}

    def of_operator(self, operator: str, labels: Labels) -> FunctionName | None:
        """The name where this operator calls it, such as ``__add__``; None where that is not recorded."""
        if operator not in self._by_operator:
            # ``1 < x`` is ``x.__gt__(1)``: of a comparison torch knows better which way round it runs.
            name = f"__{self._own}__" if self._own in _COMPARISONS else operator
            self._by_operator[operator] = labels.name("Tensor", name)
        return self._by_operator[operator]


class Labels:
    """Labels by function, each worked out when it is first asked for."""

    def __init__(self, level: RiskLevel, namespaces: frozenset[str] | None = None) -> None:
        self._known: dict[Callable[..., Any], Any] = {}
        self._level: RiskLevel = level
        self._namespaces = namespaces

    def of(self, function: Callable[..., Any]) -> Label | None:
        """None where no call of it is recorded."""
        label: Any = self._known.get(function, _UNKNOWN)
        if label is _UNKNOWN:
            label = self._known[function] = self._label(function)
        found: Label | None = label
        return found

    def name(self, prefix: str, name: str) -> FunctionName | None:
        """The name of a function of torch; None where it is not recorded."""
        if name in _QUERIES or name.startswith(("init.", "nn.", "sym_")) or not is_recorded(self._level, prefix, name):
            return None
        return FunctionName(f"{prefix}.{name}")

    def _label(self, function: Callable[..., Any]) -> Label | None:
        passed = PassedArguments(function) if isinstance(function, FunctionType) else None
        custom = custom_operator(function)
        if custom is not None:
            known = self._custom_name(custom)
            return None if known is None else Label(known, None, passed)
        path = _path(function)
        if path is None or path.endswith((".__get__", ".__set__", ".__delete__")):
            return None
        found = next(((prefix, start) for start, prefix in _PREFIXES if path.startswith(start)), None)
        if found is None:
            return None
        prefix, own = found[0], path.removeprefix(found[1])
        # Who leaves out a method leaves out the operator that calls it too.
        name = self.name(prefix, own)
        if name is None:
            return None
        return Label(name, own if prefix == "Tensor" else None, passed, isinstance(function, _IN_C))

    def _custom_name(self, custom: CustomOperator) -> FunctionName | None:
        # msProbe records those of NPUs whatever its list of namespaces says.
        is_npus = custom.prefix == NPU
        if self._namespaces is not None and custom.namespace not in self._namespaces and not is_npus:
            return None
        is_wanted = is_recorded(self._level, custom.prefix, custom.name)
        return FunctionName(f"{custom.prefix}.{custom.name}") if is_wanted else None


def _path(function: Callable[..., Any]) -> str | None:
    """Where torch has the function: of several places (``torch.mm`` is ``torch.spmm``) the one it is named after."""
    own = getattr(function, "__name__", "")
    path: str | None = resolve_name(function)
    is_internal = path is None and own.startswith(_INTERNAL)
    if (is_internal or (path is not None and path.rpartition(".")[0] == "torch")) and (
        getattr(torch, own, None) is function
    ):
        return f"torch.{own}"
    return _replaced_path(function, own) if path is None else path


def _replaced_path(function: Callable[..., Any], own: str) -> str | None:
    """Where torch had the function, if somebody has put one of his own there, or where his is.

    The first is called by the second. Torch's functions that are written in Python hand their calls on under the name
    that they have in their module, and so hand on the second.
    """
    for place, origins in _PLACES.items():
        current = getattr(place, own, None)
        if getattr(function, "__module__", None) in origins and current is not None and current is not function:
            return f"{place.__name__}.{own}"
    names = (name for name, there in vars(torch.nn.functional).items() if there is function and name[0] != "_")
    return next((f"torch.nn.functional.{name}" for name in names), None)
