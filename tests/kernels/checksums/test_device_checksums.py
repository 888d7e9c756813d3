"""The kernels' checksums are those of the host, in Triton's interpreter: bit for bit, wherever the bytes lie."""

import os
import zlib

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from probe_patch.runtime.problems import Problems
from probe_patch.runtime.stats.checksums import host_crc, layout, table
from probe_patch.runtime.stats.checksums.host_xor import xor64
from probe_patch.runtime.stats.checksums.kernels_on import Kernels
from probe_patch.runtime.stats.checksums.pending import Block, Part, PendingCrc32, PendingXor64, value_of
from probe_patch.runtime.stats.checksums.triton_kernels import USUAL, Sizes, TritonChecksums
from tests.runtime.checksum_values import VALUES

HOST = torch.device("cpu")

pytestmark = pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") != "1", reason="set TRITON_INTERPRET=1")


SMALL = Sizes(crc_block=16, xor_block=16, most_programs=4)
"""So few words that some hundred bytes take several programs and rounds."""


@pytest.fixture(scope="module")
def kernels(request: pytest.FixtureRequest) -> Kernels:
    return TritonChecksums(HOST, request.param)


def checksums(kernels: Kernels, raw: Tensor) -> tuple[int, int]:
    block = Block(HOST)
    kernels.crc32(raw, block, 7)
    kernels.xor64(raw, block, 8)
    read = block.words.tolist()
    block.give_up(read)
    assert not any(read[:7] + read[9:])
    crc = PendingCrc32([Part(block, 7, len(raw))]).value()
    xor = PendingXor64([Part(block, 8, len(raw))]).value()
    assert crc is not None and xor is not None
    return crc, xor


def expected(raw: Tensor) -> tuple[int, int]:
    return zlib.crc32(raw.numpy().tobytes()), xor64(raw)


@pytest.mark.parametrize("kernels", [SMALL], indirect=True, ids=["small"])
@pytest.mark.parametrize("first", range(8))
def test_few_bytes_from_every_place_of_a_word(kernels: Kernels, first: int) -> None:
    whole = torch.randint(256, (64,), dtype=torch.uint8)
    for length in range(1, 20):
        raw = whole[first:][:length]
        assert checksums(kernels, raw) == expected(raw), length


@pytest.mark.parametrize("kernels", [SMALL], indirect=True, ids=["small"])
@settings(max_examples=30, deadline=None)
@given(st.integers(0, 7), st.integers(1, 4100))
def test_all_lengths(kernels: Kernels, first: int, length: int) -> None:
    raw = torch.randint(256, (first + length,), dtype=torch.uint8)[first:]
    assert checksums(kernels, raw) == expected(raw)


@pytest.mark.parametrize("kernels", [USUAL], indirect=True, ids=["usual"])
@pytest.mark.parametrize("length", [1, 4095, 4100, 16_385, 300_003])
def test_full_programs(kernels: Kernels, length: int) -> None:
    raw = torch.randint(256, (length + 3,), dtype=torch.uint8)[3:]
    assert checksums(kernels, raw) == expected(raw)


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES.keys())
@pytest.mark.parametrize("piece", [5, 1 << 20])
def test_values_of_every_dtype_and_layout(monkeypatch: pytest.MonkeyPatch, values: Tensor, piece: int) -> None:
    monkeypatch.setattr(layout, "PIECE_ELEMENTS", piece)
    monkeypatch.setattr(table, "kernels_on", lambda device: TritonChecksums(device, SMALL))
    problems = Problems(set())
    # The host plays the part of a device.
    rows = table._DeviceRows(HOST, problems)
    found = rows.crc32(values), rows.xor64(values)
    rows.read()
    assert [value_of(checksum) for checksum in found] == [host_crc.crc32(values), xor64(values)]
    assert problems.all() == ()
