"""Every kernel compiles for the architectures of data centres, reads 16 bytes at once and keeps to its registers."""

import re

import pytest
import torch

from probe_patch.runtime.stats.backends.triton.variants import Arithmetic, variants
from tests.kernels.triton import ahead

ALL = list(variants(Arithmetic.FLOAT64, native_e4m3=True))
ONLY_32 = list(variants(Arithmetic.FLOAT32, native_e4m3=True))
ARCHITECTURES = (80, 90, 100)
LARGEST_LOAD = 16

# Two programs of 256 threads have room on a multiprocessor of 65536 registers.
REGISTERS = 128


def widest(compiled: ahead.Compiled) -> int:
    """The most bytes that one instruction loads."""
    sizes = [re.search(r"(?:v(\d)\.)?b(\d+)$", load) for load in compiled.loads]
    return max(int(found[1] or 1) * int(found[2]) // 8 for found in sizes if found is not None)


def wanted_width(dtype: torch.dtype) -> int:
    """Four elements at least, or 16 bytes."""
    return min(LARGEST_LOAD, 4 * dtype.itemsize)


@pytest.mark.parametrize("dtype", ALL, ids=str)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_dense_tensors(architecture: int, dtype: torch.dtype) -> None:
    compiled = ahead.dense(ahead.plan(dtype, architecture, Arithmetic.FLOAT64, True), architecture)
    assert widest(compiled) >= wanted_width(dtype)
    assert compiled.spilled == 0
    assert compiled.registers <= REGISTERS


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_several_tensors_rows_and_partial_results(architecture: int, dtype: torch.dtype) -> None:
    plan = ahead.plan(dtype, architecture, Arithmetic.FLOAT64, False)
    several = ahead.several(plan, architecture)
    rows = ahead.strided(plan, architecture, 128, even=True)
    assert min(widest(several), widest(rows)) >= wanted_width(dtype)
    assert several.spilled == rows.spilled == ahead.merging(plan, architecture).spilled == 0


def test_what_is_not_aligned_is_read_one_by_one() -> None:
    plan = ahead.plan(torch.float32, 90, Arithmetic.FLOAT64, False)
    assert widest(ahead.dense(plan, 90, aligned=False)) == 4
    assert widest(ahead.strided(plan, 90, 16, even=False)) == 4


@pytest.mark.parametrize("dtype", ONLY_32, ids=str)
def test_without_float64_no_instruction_needs_it(dtype: torch.dtype) -> None:
    plan = ahead.plan(dtype, 90, Arithmetic.FLOAT32, True)
    compiled = ahead.dense(plan, 90)
    assert compiled.spilled == 0
    assert not re.search(r"\.f64", compiled.ptx)


def test_where_float64_is_slow_the_loop_does_without() -> None:
    compiled = ahead.dense(ahead.plan(torch.bfloat16, 89, Arithmetic.SLOW_FLOAT64, True), 89)
    loop = compiled.ptx.split("ld.global.v", 1)[1].split("bra", 1)[0]
    assert "fma.rn.f32" in loop and ".f64" not in loop
    assert compiled.spilled == 0
