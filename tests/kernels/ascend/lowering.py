"""Lowers the kernels for Ascend NPUs to linalg, which is as far as triton-ascend gets without CANN, and prints the
outcome of each as JSON: an empty text, or what went wrong.

Run with triton-ascend on the path.
"""

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
import triton.backends.ascend.compiler as ascend
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from probe_patch.runtime.stats.backends.triton.backend import Plan, Shape, Tuning
from probe_patch.runtime.stats.backends.triton.kernels.merging import merge_partials
from probe_patch.runtime.stats.backends.triton.kernels.one import measure_one
from probe_patch.runtime.stats.backends.triton.variants import Arithmetic, variants
from tests.kernels.checksums.signatures import BLOCKS, kernel, signature

DTYPES = (
    "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "complex32", "complex64",
    "bool", "int8", "uint16", "int32", "int64", "uint64",
)  # fmt: skip
"""One of each way to read, to compare and to add."""

TARGET = GPUTarget("npu", "Ascend910B3", 0)
SHAPES = {
    "dense": Shape(0, False, False, False, True),
    "shared": Shape(0, False, False, False, False),
    "strided": Shape(128, False, False, False, True),
}

_SHORT = {f"{sign}int{bits}": f"{sign or 'i'}{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_SHORT |= {short: short for short in ("fp16", "bf16", "fp32")}


def lower(function: Any, types: dict[str, str], constants: dict[str, Any]) -> str:
    """The kernel in linalg."""
    backend = ascend.AscendBackend(TARGET)
    options = backend.parse_options({})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    source = ASTSource(fn=function, signature=types, constants=constants)
    module = source.make_ir(options, backend.get_codegen_implementation(), backend.get_module_map(), context)
    metadata = {**vars(options), "target": TARGET}
    text: str = ascend.ttir_to_linalg(ascend.make_ttir(module, metadata, options), metadata, options)
    return text


def checksum(name: str) -> str:
    return lower(kernel(name), signature(name), {"BLOCK": BLOCKS[name]})


def statistics(plan: Plan, shape: Shape) -> str:
    types, constants = _typed(measure_one, plan.one(shape), {"pointer": f"*{_SHORT[plan.variant.words.name]}"})
    return lower(measure_one, types, constants)


def merging(plan: Plan) -> str:
    types, constants = _typed(merge_partials, plan.merging, {})
    return lower(merge_partials, types, constants)


def _typed(
    function: Any, constants: tuple[object, ...], pointers: dict[str, str]
) -> tuple[dict[str, str], dict[str, Any]]:
    """The types of a kernel's parameters, and the constants among them by name: the last ones."""
    names = list(function.arg_names)
    first = len(names) - len(constants)
    types = dict.fromkeys(names[:first], "i64")
    types |= {name: "*fp32" for name in types if name.endswith("floats")}
    types |= {name: "*i64" for name in types if name.endswith("integers")}
    types |= pointers | dict.fromkeys(names[first:], "constexpr")
    return types, dict(zip(names[first:], constants, strict=True))


def all_kernels() -> Iterator[tuple[str, Callable[[], str]]]:
    for name in BLOCKS:
        yield name, partial(checksum, name)
    every = variants(Arithmetic.FLOAT32, native_e4m3=False)
    for dtype in DTYPES:
        plan = Plan(every[getattr(torch, dtype)], True, Tuning(programs=40, small=0))
        for layout, shape in SHAPES.items():
            yield f"{dtype} {layout}", partial(statistics, plan, shape)
        yield f"{dtype} merged", partial(merging, plan)


def outcome(of: Callable[[], str]) -> str:
    try:
        lowered = of()
    except Exception as error:
        said = getattr(error, "stderr", b"") or b""
        return f"{type(error).__name__}: {error} {said.decode()}"
    return "" if "linalg." in lowered else "nothing of linalg came out of it"


if __name__ == "__main__":
    json.dump({name: outcome(of) for name, of in all_kernels()}, sys.stdout)
