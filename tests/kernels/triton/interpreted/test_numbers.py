"""Every dtype, layout and special value against float64, in the interpreter."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from probe_patch.runtime.stats.backends.triton.kernels.reading import decode
from probe_patch.runtime.stats.backends.triton.launching import Launcher
from probe_patch.runtime.stats.backends.triton.variants import Arithmetic, variants
from probe_patch.runtime.stats.rows import Block
from tests.kernels.triton.interpreted.measuring import HOST, backend, expected, measured, same

pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")

INF, NAN = math.inf, math.nan
ALL = list(variants(Arithmetic.FLOAT64, native_e4m3=False))
EIGHT_BITS = [dtype for dtype in ALL if dtype.is_floating_point and dtype.itemsize == 1]


def check(tensors: Sequence[Tensor], arithmetic: Arithmetic) -> None:
    for tensor, found in zip(tensors, measured(tensors, arithmetic), strict=True):
        wanted = expected(tensor)
        if tensor.dtype is torch.bool:
            assert (found.maximum, found.minimum) == (wanted.maximum, wanted.minimum)
            continue
        assert same(found, wanted, mean_size(tensor)), (tensor.dtype, tensor.shape, tensor.stride(), found, wanted)


def mean_size(tensor: Tensor) -> float:
    wide = tensor.to(torch.float32) if tensor.dtype.itemsize == 1 else tensor
    return float(wide.to(torch.complex128 if tensor.dtype.is_complex else torch.float64).abs().mean())


def served(arithmetic: Arithmetic) -> list[torch.dtype]:
    return list(variants(arithmetic, native_e4m3=False))


def some(dtype: torch.dtype, count: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    if dtype.is_complex:
        return torch.randn(count, dtype=torch.complex64, generator=generator).to(dtype)
    if dtype is getattr(torch, "float8_e8m0fnu", None):
        return torch.randint(100, 150, (count,), dtype=torch.uint8, generator=generator).view(dtype)
    if dtype.is_floating_point:
        return (torch.randn(count, generator=generator) + 0.25).to(dtype)
    low = 0 if dtype is torch.bool or not dtype.is_signed else -100
    return torch.randint(low, 100, (count,), generator=generator).to(dtype)


@pytest.mark.parametrize("arithmetic", Arithmetic, ids=lambda one: one.name)
def test_every_dtype_small_and_large(arithmetic: Arithmetic) -> None:
    """One value, one tile and a tail, several programs; and all of a dtype at once, so that they share launches."""
    check([some(dtype, count, count) for dtype in served(arithmetic) for count in (1, 33, 331)], arithmetic)


LAYOUTS: list[tuple[str, tuple[int, ...], Callable[[Tensor], Tensor]]] = [
    ("scalar", (1,), lambda base: base[0]),
    ("transposed", (7, 9), lambda base: base.t()),
    ("sliced columns", (12, 48), lambda base: base[:, 16:48]),
    ("sliced, uneven", (12, 31), lambda base: base[:, 3:30]),
    ("every third", (300,), lambda base: base[::3]),
    ("steps both ways", (20, 20), lambda base: base[::3, ::2]),
    ("three dimensions", (4, 6, 10), lambda base: base[::2, ::2, 1:9]),
    ("four dimensions", (3, 4, 5, 6), lambda base: base[:, :3, :4, :5]),
    ("five dimensions", (2, 3, 4, 3, 4), lambda base: base[:, :2, :3, :2, :3]),
    ("permuted", (3, 4, 5), lambda base: base.permute(2, 0, 1)),
    ("expanded rows", (1, 7), lambda base: base.expand(40, 7)),
    ("expanded columns", (7, 1), lambda base: base.expand(7, 40)),
    ("expanded scalar", (1,), lambda base: base[0].expand(500)),
    ("overlapping", (90,), lambda base: base.as_strided((20, 30), (1, 2))),
    ("misaligned", (77,), lambda base: base[1:]),
]


@pytest.mark.parametrize(("shape", "view"), [case[1:] for case in LAYOUTS], ids=[case[0] for case in LAYOUTS])
def test_every_layout_without_a_copy_of_it(shape: tuple[int, ...], view: Callable[[Tensor], Tensor]) -> None:
    dtypes = (torch.float32, torch.bfloat16, torch.int64, torch.complex128)
    check([view(some(dtype, math.prod(shape), 3).reshape(shape)) for dtype in dtypes], Arithmetic.FLOAT64)


def test_more_elements_than_32_bits_can_number() -> None:
    """By strides of nothing: each element stands for many."""
    (found,) = measured([torch.tensor([3.0, -4.0, 0.0]).expand(1 << 30, 3)])
    assert found[:2] == (3.0, -4.0)
    assert found[2:4] == pytest.approx((-1 / 3, 5 * 2.0**15))
    assert found.counts == (0, 0, 0, 1 << 30)


@triton.jit  # type: ignore[untyped-decorator]
def decoded(words: Any, values: Any, code: tl.constexpr) -> None:
    every = tl.arange(0, 256)
    tl.store(values + every, decode(tl.load(words + every), code, tl.float32))


@pytest.mark.parametrize("dtype", EIGHT_BITS, ids=str)
def test_every_bit_pattern_of_eight_bit_floats(dtype: torch.dtype) -> None:
    every = torch.arange(256, dtype=torch.int32).to(torch.uint8).view(dtype)
    values = torch.empty(256)
    variant = variants(Arithmetic.FLOAT64, native_e4m3=False)[dtype]
    decoded[(1,)](triton.reinterpret(every, variant.words), values, variant.code)
    exact = every.to(torch.float32)
    assert torch.equal(values.isnan(), exact.isnan())
    assert torch.equal(values[~exact.isnan()], exact[~exact.isnan()])
    known = every[every.to(torch.float32).isfinite()]
    for arithmetic in Arithmetic:
        check([every, known], arithmetic)


# Not bfloat16's subnormal numbers, which the interpreter converts wrongly.
SPECIAL: dict[torch.dtype, Sequence[Sequence[complex]]] = {
    torch.float32: [
        [NAN],
        [NAN, 1.0],
        [INF, 1.0],
        [-INF, INF],
        [-INF, NAN, INF],
        [-0.0, 0.0],
        [1e30, -1e30, 1.0],
        [1e-30, -2e-30],
        [1e30, 1e-30, 1.0, 0.0],
        [1e-45, 1e-45],
        [3e38] * 4,
        [1.5 * 2.0**39, 1.5 * 2.0**40, 2.0**41],
        [2.0**-51, 2.0**-50, 2.0**-49],
    ],
    torch.bfloat16: [[NAN, 1.0], [INF], [3e38] * 4],
    torch.float16: [[NAN, 1.0], [-INF], [65504.0] * 70, [6e-8] * 70],
    torch.float64: [
        [1e200, -1e200],
        [1e-200, 3e-200],
        [1e308] * 4,
        [-INF, 1e200],
        [NAN, 1e200],
        [5e-324],
        [1e200, 1e-200],
        [2.0**399, 2.0**401, 2.0**-399, 2.0**-401],
        [0.0, 0.0],
    ],
    torch.complex64: [
        [complex(INF, NAN), 1.0],
        [complex(NAN, 1.0)],
        [complex(3e30, 4e30)],
        [complex(3e38, 3e38)],
        [complex(3e-30, -4e-30)],
        [0j, complex(-0.0, 0.0)],
    ],
    torch.complex128: [
        [complex(3e200, 4e200)],
        [complex(3e-200, 4e-200)],
        [complex(-INF, NAN)],
        [0j],
        [complex(0, NAN)],
    ],
    torch.int64: [[2**63 - 1, -(2**63)], [2**53 + 1, 0], [-(2**63)]],
    torch.uint64: [[2**64 - 1, 1], [0], [2**63, 2**63 - 1]],
    torch.int32: [[2**31 - 1, -(2**31)], [-1]],
    torch.uint32: [[2**32 - 1, 0]],
    torch.int8: [[-128, 127]],
    torch.uint16: [[65535, 0]],
}

# What no row of float32 can hold.
BEYOND_FLOAT32 = {"[3e+38, 3e+38, 3e+38, 3e+38]", "[(3e+38+3e+38j)]", "[1e-45, 1e-45]"}


@pytest.mark.parametrize("dtype", SPECIAL, ids=str)
@pytest.mark.parametrize("arithmetic", Arithmetic, ids=lambda one: one.name)
def test_special_values(dtype: torch.dtype, arithmetic: Arithmetic) -> None:
    if dtype not in served(arithmetic):
        with pytest.raises(KeyError):
            measured([torch.zeros(1, dtype=dtype)], arithmetic)
        return
    lists = [
        values for values in SPECIAL[dtype] if arithmetic is not Arithmetic.FLOAT32 or str(values) not in BEYOND_FLOAT32
    ]
    check([torch.tensor(values, dtype=dtype) for values in lists], arithmetic)
    # And over several programs, among others.
    check([torch.tensor(values, dtype=dtype).repeat(333)[: 333 + len(values)] for values in lists[:4]], arithmetic)


def test_a_negation_that_is_pending_counts() -> None:
    parts = torch.tensor([3 + 4j, 1 - 2j]).conj().imag
    assert parts.is_neg()
    (found,) = measured([parts])
    assert found[:3] == (2.0, -4.0, -1.0)


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_values_of_any_shape(data: st.DataObject) -> None:
    arithmetic = data.draw(st.sampled_from(Arithmetic))
    dtype = data.draw(st.sampled_from([torch.float32, torch.bfloat16, torch.float16]))
    values = data.draw(st.lists(st.floats(-(2.0**50), 2.0**50, width=32), min_size=1, max_size=40))
    base = torch.tensor(values, dtype=torch.float32).clamp(-6e4, 6e4).to(dtype)
    repeats = data.draw(st.integers(1, 9))
    step = data.draw(st.integers(1, 3))
    check(
        [base.repeat(repeats)[::step], base.repeat(3, 2)[:, ::step], base.expand(repeats, len(values)).t()], arithmetic
    )


def test_rows_that_are_not_measured_stay_as_they_are() -> None:
    block = Block(HOST, torch.float64)
    block.words.fill_(17)
    tensors = [torch.ones(3), torch.ones(300), torch.ones(4, 4)[:, :3]]
    backend().measure(tensors, [], block, 5)
    assert (block.words[:5] == 17).all() and (block.words[8:] == 17).all()
    assert block.floats[5:8, 0].tolist() == [1.0, 1.0, 1.0]


def test_seventeen_small_tensors_take_two_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    launched = []
    original = Launcher.__call__

    def counted(launcher: Launcher, key: object, programs: int, *rest: object) -> None:
        launched.append(programs)
        original(launcher, key, programs, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Launcher, "__call__", counted)
    found = measured([torch.full((number + 1,), float(number)) for number in range(17)])
    assert launched == [16, 1]
    assert [row.maximum for row in found] == [float(number) for number in range(17)]
