"""The kernels compile for every NVIDIA architecture that matters, to what they are meant to."""

import pytest
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from tests.kernels.checksums.signatures import BLOCKS, kernel, signature

ARCHITECTURES = (80, 90, 100)
WHOLES = ("i32", "i64")
"""Sizes of more than 2**31 are compiled for by themselves."""


def compiled(name: str, architecture: int, whole: str) -> str:
    """PTX."""
    types = signature(name, whole)
    source = ASTSource(
        fn=kernel(name),
        signature=types,
        constexprs={"BLOCK": BLOCKS[name]},
        attrs={(place,): [["tt.divisibility", 16]] for place, of in enumerate(types.values()) if of.startswith("*")},
    )
    options = {"num_warps": 4}
    ptx: str = triton.compile(source, target=GPUTarget("cuda", architecture, 32), options=options).asm["ptx"]
    return ptx


@pytest.mark.parametrize("whole", WHOLES)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_exclusive_or_reads_16_bytes_at_a_time(architecture: int, whole: str) -> None:
    ptx = compiled("xor64_kernel", architecture, whole)
    assert "ld.global.v2.b64" in ptx
    assert "atom.global.gpu.acq_rel.xor.b64" in ptx
    assert ".local" not in ptx


@pytest.mark.parametrize("whole", WHOLES)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_crc32_needs_no_local_memory(architecture: int, whole: str) -> None:
    ptx = compiled("crc32_kernel", architecture, whole)
    assert "atom.global.gpu.acq_rel.xor.b32" in ptx
    assert ".local" not in ptx
