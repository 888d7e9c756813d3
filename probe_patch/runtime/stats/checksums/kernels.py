"""Checksums in Triton. Each program adds its share to one word of a table with an atomic exclusive or, of which the
order does not matter: so one launch does it, whatever the size, without scratch memory and without waiting.

The bytes are split by the address: at most a word's less one before the first aligned word (``head``), aligned words,
and what is left (``tail``) from ``behind`` on. This module needs Triton 3.2, triton-ascend's, or a later one.
"""

# Triton reads annotations as its own.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"
# ruff: noqa: ANN001, ANN201, ANN202, N803

import triton
import triton.language as tl


@triton.jit
def _next_byte(table_ptr, state, byte):
    """The register of a CRC-32, int32, after one more byte."""
    return tl.load(table_ptr + ((state ^ byte) & 255)) ^ ((state >> 8) & 0xFFFFFF)


@triton.jit
def _product(left, right):
    """See ``polynomial.product``; int32."""
    result = left & 0
    for _ in range(32):
        result ^= tl.where(left < 0, right, 0)
        left = left << 1
        right = ((right >> 1) & 0x7FFFFFFF) ^ tl.where((right & 1) != 0, -306674912, 0)
    return result


@triton.jit
def _times_factor(table_ptr, state):
    """The product with the factor that four tables of 256 were made for; see ``polynomial.byte_tables``."""
    return (
        tl.load(table_ptr + (state & 255))
        ^ tl.load(table_ptr + 256 + ((state >> 8) & 255))
        ^ tl.load(table_ptr + 512 + ((state >> 16) & 255))
        ^ tl.load(table_ptr + 768 + ((state >> 24) & 255))
    )


@triton.jit(do_not_specialize=["row", "head", "words", "behind", "tail", "rounds"])
def crc32_kernel(
    bytes_ptr,
    words_ptr,
    table_ptr,
    row,
    byte_ptr,
    factor_ptr,
    lanes_ptr,
    programs_ptr,
    head,
    words,
    behind,
    tail,
    rounds,
    BLOCK: tl.constexpr,
):
    """Put the CRC-32 of bytes into a word that holds 0.

    As many words as there are lanes in all programs are one round, the first of which is short and begins with zeros,
    which change nothing before the first byte. A lane sums up every so many-th word, and multiplies by x**32 for each
    word between; what it has is worth more by the lanes behind it.

    Args:
        bytes_ptr: uint8, all bytes.
        words_ptr: int32, the aligned words.
        table_ptr: int32; the row is the lower half of int64 word ``row``.
        byte_ptr: int32 [256], for x**8.
        factor_ptr: int32 [4, 256], for x**32 to the number of all lanes.
        lanes_ptr: int32 [BLOCK], what a lane's sum is worth in its program: x**32 to the powers BLOCK, and so on to 1.
        programs_ptr: int32, x**(32 * BLOCK) to the powers 0, 1, and so on.
    """
    program = tl.program_id(0)
    programs = tl.num_programs(0)
    lane = tl.arange(0, BLOCK)
    lanes = programs.to(tl.int64) * BLOCK

    # What the words before it left in the register is as if it were in the first word.
    start = tl.full((), -1, tl.int32)
    for at in tl.static_range(0, 3):
        byte = tl.load(bytes_ptr + at, mask=at < head, other=0).to(tl.int32)
        start = tl.where(at < head, _next_byte(byte_ptr, start, byte), start)

    place = (program * BLOCK + lane).to(tl.int64) - (lanes * rounds - words)
    total = tl.load(words_ptr + place, mask=place >= 0, other=0)
    total ^= tl.where(place == 0, start, 0)
    for _ in range(1, rounds):
        place += lanes
        word = tl.load(words_ptr + place)
        total = _times_factor(factor_ptr, total) ^ word
    share = tl.xor_sum(_product(total, tl.load(lanes_ptr + lane)), 0)
    share = _product(share, tl.load(programs_ptr + (programs - 1 - program)))
    share ^= tl.where((program == 0) & (words == 0), start, 0)

    # All programs' shares go through the zeros in the tail's place, one of them through the tail itself.
    for at in tl.static_range(0, 3):
        byte = tl.load(bytes_ptr + behind + at, mask=(at < tail) & (program == 0), other=0).to(tl.int32)
        share = tl.where(at < tail, _next_byte(byte_ptr, share, byte), share)
    share ^= tl.where(program == 0, -1, 0)
    tl.atomic_xor(table_ptr + 2 * row, share)


@triton.jit(do_not_specialize=["row", "head", "words", "behind", "tail", "rounds"])
def xor64_kernel(
    bytes_ptr,
    words_ptr,
    table_ptr,
    row,
    head,
    words,
    behind,
    tail,
    rounds,
    BLOCK: tl.constexpr,
):
    """Put the exclusive or of little-endian words of eight bytes into a word that holds 0.

    The words are those from the first byte on, zeros behind the last. Aligned words hold the same bytes, rotated.

    Args:
        bytes_ptr: uint8, all bytes.
        words_ptr: int64, the aligned words.
        table_ptr: int64.
        rounds: how many times all programs read a whole block; what is left for the last time is less.
    """
    program = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    step = tl.num_programs(0).to(tl.int64) * BLOCK
    first = words_ptr + program * BLOCK
    total = tl.zeros((BLOCK,), tl.int64)
    for _ in range(rounds):
        total ^= tl.load(first + lane)
        first += step
    place = program * BLOCK + lane + rounds * step
    total ^= tl.load(words_ptr + place, mask=place < words, other=0)
    share = tl.xor_sum(total, 0)
    turn = tl.full((), head * 8, tl.uint64)
    turned = share.to(tl.uint64, bitcast=True)
    share = ((turned << turn) | (turned >> ((64 - turn) & 63))).to(tl.int64, bitcast=True)

    edge = tl.arange(0, 16)
    is_head = edge < 8
    last = edge - 8
    length = tl.where(is_head, head, tail)
    at = tl.where(is_head, edge, behind + last)
    there = (tl.where(is_head, edge, last) < length) & (program == 0)
    byte = tl.load(bytes_ptr + at, mask=there, other=0).to(tl.int64)
    position = tl.where(is_head, edge, head + last) & 7
    share ^= tl.xor_sum(byte << (position * 8).to(tl.int64), 0)
    tl.atomic_xor(table_ptr + row, share)
