"""Operators that torch does not bring itself: ``torch.ops.{namespace}.{name}`` and the functions of torch_npu."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from torch._ops import OpOverload, OpOverloadPacket

NPU: Final = "NPU"

_TORCHS_OWN: Final = frozenset(
    """
    _c10d_functional _c10d_functional_autograd _dtensor _inductor_test _native _nnapi _quantized _test aten c10d
    c10d_functional caffe2 cuda debug_mode_ops debugprims export flex_lib fsdp higher_order inductor inductor_prims mkl
    mkldnn mkldnn_prepacked metal metal_prepack mps onednn onnx onnx_symbolic prepacked prim prims profiler quantization
    quantized quantized_decomposed rngprims sparse static_runtime streams symm_mem tensorexpr torch_attn vulkan
    vulkan_prepack vulkan_quantized xnnpack
    """.split()  # noqa: SIM905
)
"""Namespaces that torch 2.4 to 2.13 registers. Its public functions call them; who calls ``torch.ops.aten`` himself, as
compiled code does, is not recorded, nor is he by msProbe 26.2.0, though its format has the prefix ``Aten``."""


@dataclass(frozen=True)
class CustomOperator:
    """What such an operator is called.

    Attributes:
        namespace: in ``torch.ops``.
        prefix: in a dump: the namespace, but ``NPU`` for torch_npu's.
        name: below both, without the overload.
    """

    namespace: str
    prefix: str
    name: str


def custom_operator(function: Callable[..., Any]) -> CustomOperator | None:
    """The names of an operator that is not torch's own; None for anything else."""
    if isinstance(function, OpOverload | OpOverloadPacket):
        packet = function.overloadpacket if isinstance(function, OpOverload) else function
        namespace, _, name = packet._qualified_op_name.partition("::")
        if namespace in _TORCHS_OWN:
            return None
        return CustomOperator(namespace, NPU if namespace == "npu" else namespace, name)
    name = getattr(function, "__name__", "")
    torch_npu = sys.modules.get("torch_npu")
    if name.startswith("npu_") and torch_npu is not None and getattr(torch_npu, name, None) is function:
        return CustomOperator("npu", NPU, name)
    return None
