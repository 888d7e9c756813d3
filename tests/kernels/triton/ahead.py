"""Kernels compiled for GPUs that need not be there, and what the compilers say about them."""

import contextlib
import io
import re
from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from probe_patch.runtime.stats.backends.triton.backend import EVEN, SEVERAL, Plan, Shape, Tuning
from probe_patch.runtime.stats.backends.triton.kernels.merging import merge_partials
from probe_patch.runtime.stats.backends.triton.kernels.one import measure_one
from probe_patch.runtime.stats.backends.triton.kernels.several import measure_several
from probe_patch.runtime.stats.backends.triton.variants import Arithmetic, variants

TUNING = Tuning(programs=528)
NATIVE_E4M3 = 89
POINTERS = {tl.int8: "*i8", tl.uint8: "*u8", tl.int16: "*i16", tl.uint16: "*u16"} | {
    tl.int32: "*i32",
    tl.uint32: "*u32",
    tl.int64: "*i64",
}


@dataclass(frozen=True)
class Compiled:
    """One kernel on one architecture.

    Attributes:
        ptx: its assembly.
        registers: of a thread.
        spilled: bytes that did not fit into them, stored and loaded.
    """

    ptx: str
    registers: int
    spilled: int

    @property
    def loads(self) -> list[str]:
        """The instructions that load from global memory, such as ``ld.global.v4.b32``."""
        return re.findall(r"ld\.global\S*", self.ptx)


def plan(dtype: torch.dtype, capability: int, arithmetic: Arithmetic, counts: bool) -> Plan:
    return Plan(variants(arithmetic, capability >= NATIVE_E4M3)[dtype], counts, TUNING)


def dense(plan: Plan, capability: int, aligned: bool = True) -> Compiled:
    """A large tensor, dense in memory."""
    return _one(plan, capability, Shape(width=0, is_long=False, even=False, unit=False, alone=False), aligned)


def strided(plan: Plan, capability: int, width: int, even: bool) -> Compiled:
    """A large tensor with gaps between its rows."""
    return _one(plan, capability, Shape(width, is_long=False, even=even, unit=True, alone=False), True)


def several(plan: Plan, capability: int) -> Compiled:
    """Small tensors that begin at a multiple of 16 bytes."""
    return _compile(measure_several, plan.several[True], _rows(plan), capability, warps=4)


def merging(plan: Plan, capability: int) -> Compiled:
    """Partial results."""
    row = _rows(plan)
    partial = {"partial_floats": row["floats"], "partial_integers": row["integers"]}
    return _compile(merge_partials, plan.merging, partial | row, capability, warps=8)


def _one(plan: Plan, capability: int, shape: Shape, aligned: bool) -> Compiled:
    words = plan.variant.words
    pointers = {"pointer": POINTERS.get(words, f"*{words}")} | _rows(plan)
    unaligned = frozenset() if aligned else frozenset({"pointer"})
    return _compile(measure_one, plan.one(shape), pointers, capability, warps=8, unaligned=unaligned)


def _rows(plan: Plan) -> dict[str, str]:
    return {"floats": f"*{plan.variant.row}", "integers": "*i64"}


def _compile(
    kernel: Any,
    constants: tuple[object, ...],
    pointers: dict[str, str],
    capability: int,
    warps: int,
    unaligned: frozenset[str] = frozenset(),
) -> Compiled:
    names = kernel.arg_names
    arguments, constant_names = names[: -len(constants)], names[-len(constants) :]
    signature = {name: pointers.get(name, "i64") for name in arguments} | dict.fromkeys(constant_names, "constexpr")
    aligned = [name for name in pointers if name not in unaligned]
    source = ASTSource(
        fn=kernel,
        signature=signature,
        constexprs=dict(zip(constant_names, constants, strict=True)),
        attrs={(names.index(name),): [["tt.divisibility", EVEN]] for name in aligned},
    )
    said = io.StringIO()
    with triton.knobs.nvidia.scope(), triton.knobs.compilation.scope(), contextlib.redirect_stdout(said):
        triton.knobs.nvidia.dump_ptxas_log = True
        triton.knobs.compilation.always_compile = True
        made = triton.compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": warps})
    log = said.getvalue()
    spilled = sum(int(number) for number in re.findall(r"(\d+) bytes spill", log))
    (registers,) = re.findall(r"Used (\d+) registers", log)
    return Compiled(made.asm["ptx"], int(registers), spilled)


assert sum(name.startswith("address") for name in measure_several.arg_names) == SEVERAL
