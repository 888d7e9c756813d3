"""Checksums are those of the raw bytes, whatever the dtype, the layout and the size."""

import struct
import zlib
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from torch import Tensor

from probe_patch.runtime.stats.apart import apart_from_the_run
from probe_patch.runtime.stats.backends import reference
from probe_patch.runtime.stats.checksums import crc32, xor64

VIEWS: list[Callable[[Tensor], Tensor]] = [
    lambda x: x,
    lambda x: x.transpose(0, -1),
    lambda x: x[..., ::2],
    lambda x: x[1:],
    lambda x: x.expand(3, *x.shape),
]


def xor_of(raw: bytes) -> str | None:
    padded = raw + bytes(-len(raw) % 8)
    word = 0
    for (part,) in struct.iter_unpack("<Q", padded):
        word ^= part
    return f"0x{word:016x}" if raw else None


@given(
    arrays.arrays(
        st.sampled_from([np.float64, np.float32, np.float16, np.int8, np.uint16, np.int64, np.bool_, np.complex64]),
        arrays.array_shapes(max_dims=3, max_side=9),
    ),
    st.sampled_from(VIEWS),
    st.sampled_from([1, 3, 8, 1 << 20]),
)
def test_they_are_those_of_the_bytes_in_row_major_order(
    array: "np.ndarray", view: Callable[[Tensor], Tensor], piece: int
) -> None:
    tensor = view(torch.from_numpy(array))
    raw = tensor.numpy().tobytes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference, "CHUNK_ELEMENTS", piece)
        assert (crc32(tensor), xor64(tensor)) == (f"{zlib.crc32(raw):08x}", xor_of(raw))


@pytest.mark.parametrize(
    ("tensor", "raw"),
    [
        (torch.tensor([1.0, -2.0], dtype=torch.bfloat16), bytes.fromhex("803f00c0")),
        (torch.tensor([1.0, 2.0]).to(torch.float8_e4m3fn), bytes.fromhex("3840")),
        (torch.tensor([7, 8], dtype=torch.uint8).view(torch.float4_e2m1fn_x2), b"\7\10"),
        (torch.tensor(1.5), bytes.fromhex("0000c03f")),
        (torch.tensor(5), b"\5" + bytes(7)),
        (torch.tensor([1 + 2j]).conj(), bytes.fromhex("0000803f000000c0")),
        (torch.tensor([1 + 2j]).conj().imag, bytes.fromhex("000000c0")),
        (torch.empty(0, 3), b""),
        (torch.nn.Parameter(torch.ones(1)), bytes.fromhex("0000803f")),
    ],
    ids=["bf16", "fp8", "fp4", "scalar", "whole-scalar", "conjugate", "negative", "empty", "parameter"],
)
def test_known_bytes(tensor: Tensor, raw: bytes) -> None:
    with apart_from_the_run():
        values = tensor.detach()
        assert (crc32(values), xor64(values)) == (f"{zlib.crc32(raw):08x}", xor_of(raw))


@pytest.mark.parametrize("elements", [1023, 1025, 5000])
def test_tensors_of_more_than_a_few_bytes(monkeypatch: pytest.MonkeyPatch, elements: int) -> None:
    tensor = torch.randn(3, elements).to(torch.float16)
    monkeypatch.setattr(reference, "CHUNK_ELEMENTS", 2 * elements)
    before = tensor.clone()
    assert xor64(tensor) == xor_of(tensor.numpy().tobytes())
    assert torch.equal(tensor, before)


def test_msprobes_own_example() -> None:
    assert crc32(torch.arange(8.0)) == "7a0a407c"
