"""Checksums on the host are those of the raw bytes, whatever the dtype, the layout, the size and the library."""

import struct
import zlib
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from torch import Tensor

from probe_patch.runtime.problems import Problems
from probe_patch.runtime.stats.apart import ApartFromTheRun
from probe_patch.runtime.stats.checksums import host_crc, host_xor, layout, pending, table
from probe_patch.runtime.stats.checksums.host_crc import crc32
from probe_patch.runtime.stats.checksums.host_xor import by_numpy, by_torch, xor64
from probe_patch.runtime.stats.checksums.pending import Block, value_of
from probe_patch.runtime.stats.checksums.polynomial import joined
from probe_patch.runtime.stats.checksums.table import ChecksumTable
from tests.needs import needs
from tests.runtime.checksum_values import VALUES

VIEWS: list[Callable[[Tensor], Tensor]] = [
    lambda x: x,
    lambda x: x.transpose(0, -1),
    lambda x: x[..., ::2],
    lambda x: x[1:],
    lambda x: x.expand(3, *x.shape),
]


def xor_of(raw: bytes) -> int:
    word = 0
    for (part,) in struct.iter_unpack("<Q", raw + bytes(-len(raw) % 8)):
        word ^= part
    return word


@pytest.fixture(params=host_crc.LIBRARIES)
def crc_library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    package = request.param.partition(".")[0]
    needs(find_spec(package) is not None, f"{package} is not installed: run `make venv`")
    monkeypatch.setattr(host_crc, "_crc32", import_module(request.param).crc32)


@pytest.fixture(params=["numpy", "torch"])
def xor_library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_xor, "_xor_of_words", by_numpy() if request.param == "numpy" else by_torch)


def spans() -> Iterator[Tensor]:
    """Bytes of all lengths from 0 to 4100, and some larger ones, that begin at any place of a word."""
    whole = torch.randint(256, (2_000_000,), dtype=torch.uint8)
    for length in (*range(4101), 131_073, 300_003, 1_234_567):
        yield whole[length % 13 :][:length]


@pytest.mark.usefixtures("crc_library")
def test_crc32_of_every_length() -> None:
    for span in spans():
        assert crc32(span) == zlib.crc32(span.numpy().tobytes()), len(span)


@pytest.mark.usefixtures("xor_library")
def test_xor64_of_every_length() -> None:
    for span in spans():
        before = span.clone()
        assert xor64(span) == xor_of(span.numpy().tobytes()), len(span)
        assert torch.equal(span, before)


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
        patch.setattr(layout, "PIECE_ELEMENTS", piece)
        patch.setattr(host_crc, "PIECE_ELEMENTS", piece)
        assert (crc32(tensor), xor64(tensor)) == (zlib.crc32(raw), xor_of(raw))


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
        (torch.empty(3, 0).T, b""),
        (torch.nn.Parameter(torch.ones(1)), bytes.fromhex("0000803f")),
    ],
    ids=["bf16", "fp8", "fp4", "scalar", "whole-scalar", "conjugate", "negative", "empty", "empty-across", "parameter"],
)
def test_known_bytes(tensor: Tensor, raw: bytes) -> None:
    checksums = ChecksumTable(Problems(set()))
    with ApartFromTheRun():
        values = tensor.detach()
        found = checksums.crc32(values), checksums.xor64(values)
    assert [value_of(checksum) for checksum in found] == [zlib.crc32(raw), xor_of(raw)]


def test_msprobes_own_example() -> None:
    assert f"{crc32(torch.arange(8.0)):08x}" == "7a0a407c"


@pytest.mark.parametrize("available", [("zlib",), ("zlib_ng.zlib_ng", "zlib"), host_crc.LIBRARIES], ids=len)
def test_the_quickest_library_that_loads_is_used(monkeypatch: pytest.MonkeyPatch, available: tuple[str, ...]) -> None:
    tried: list[str] = []

    class Library:
        crc32 = len

    def load(name: str) -> type:
        tried.append(name)
        if name not in available:
            raise OSError("it was built for another processor")
        return Library

    monkeypatch.setattr(host_crc, "import_module", load)
    found: object = host_crc.quickest_crc32()
    assert found is Library.crc32
    assert tried[-1] == available[0]


@given(st.binary(max_size=50), st.binary(max_size=50))
def test_checksums_of_parts_are_joined(first: bytes, second: bytes) -> None:
    assert joined(zlib.crc32(first), zlib.crc32(second), len(second)) == zlib.crc32(first + second)


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES.keys())
@pytest.mark.parametrize("piece", [1, 5, 1 << 20])
def test_a_device_without_kernels(monkeypatch: pytest.MonkeyPatch, values: Tensor, piece: int) -> None:
    monkeypatch.setattr(layout, "PIECE_ELEMENTS", piece)
    monkeypatch.setattr(host_crc, "PIECE_ELEMENTS", piece)
    problems = Problems(set())
    # The host plays the part of a device.
    rows = table._DeviceRows(torch.device("cpu"), problems)
    found = rows.crc32(values), rows.xor64(values)
    rows.read()
    assert [value_of(checksum) for checksum in found] == [crc32(values), xor64(values)]
    assert [(problem.count, "CRC-32 is taken on the host" in problem.message) for problem in problems.all()] == [
        (1, True)
    ]


def test_kernels_that_fail_are_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing:
        launches = 0

        def crc32(self, raw: Tensor, block: Block, row: int) -> None:
            self.launches += 1
            block.words[row] = 1
            raise RuntimeError("no kernel image is available")

        xor64 = crc32

    kernels = Failing()
    monkeypatch.setattr(table, "kernels_on", lambda device: kernels)
    problems = Problems(set())
    rows = table._DeviceRows(torch.device("cpu"), problems)
    values = torch.arange(8.0)
    found = rows.crc32(values), rows.xor64(values), rows.crc32(values)
    rows.read()
    assert [value_of(checksum) for checksum in found] == [crc32(values), xor64(values), crc32(values)]
    assert kernels.launches == 1
    (problem,) = problems.all()
    assert "no kernel image is available" in problem.message
    assert problem.count == 1


def test_more_checksums_than_one_block_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "ROWS_PER_BLOCK", 3)
    monkeypatch.setattr(pending, "ROWS_PER_BLOCK", 3)
    rows = table._DeviceRows(torch.device("cpu"), Problems(set()))
    found = [rows.xor64(torch.tensor([number])) for number in range(8)]
    assert [value_of(checksum) for checksum in found] == [None] * 8
    rows.read()
    assert [value_of(checksum) for checksum in found] == list(range(8))
