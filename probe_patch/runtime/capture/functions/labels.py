"""What a function is called in a dump: ``Functional.linear``, ``Tensor.__add__``, ``Torch.linalg.norm``."""

from collections.abc import Callable
from types import FrameType
from typing import Any, Final

import torch
from torch.overrides import resolve_name

from probe_patch.runtime.capture.functions.custom_operators import NPU, CustomOperator, custom_operator
from probe_patch.runtime.capture.functions.operators import Operators
from probe_patch.runtime.capture.functions.risk import RiskLevel, is_recorded
from probe_patch.runtime.capture.names import FunctionName

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


class Labels:
    """Names by function and, for operators, by call site; each is worked out once."""

    def __init__(self, level: RiskLevel, namespaces: frozenset[str] | None = None) -> None:
        self._level: RiskLevel = level
        self._namespaces = namespaces
        self._operators = Operators()
        self._known: dict[tuple[Callable[..., Any], str | None], FunctionName | None] = {}

    def of(self, function: Callable[..., Any], caller: FrameType) -> FunctionName | None:
        """The name of a function that ``caller`` is calling; None where it is not recorded."""
        operator = self._operators.at(caller, function)
        key = (function, operator)
        if key not in self._known:
            self._known[key] = self._name(function, operator)
        return self._known[key]

    def _name(self, function: Callable[..., Any], operator: str | None) -> FunctionName | None:
        custom = custom_operator(function)
        if custom is not None:
            return self._custom_name(custom)
        path = _path(function)
        if path is None or path.endswith((".__get__", ".__set__", ".__delete__")):
            return None
        found = next(((prefix, start) for start, prefix in _PREFIXES if path.startswith(start)), None)
        if found is None:
            return None
        prefix, name = found[0], path.removeprefix(found[1])
        if prefix == "Tensor" and operator is not None:
            # ``1 < x`` is ``x.__gt__(1)``: of a comparison torch knows better which way round it runs.
            name = f"__{name}__" if name in ("lt", "le", "gt", "ge", "ne") else operator
        if name in _QUERIES or name.startswith(("init.", "nn.", "sym_")) or not is_recorded(self._level, prefix, name):
            return None
        return FunctionName(f"{prefix}.{name}")

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
    return path
