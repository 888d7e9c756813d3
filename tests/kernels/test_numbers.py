"""Every backend against exact sums: dtypes, shapes, layouts and special values."""

import math
import threading
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.kernels.backends import BACKENDS, measured
from tests.kernels.oracle import differences, expected_of

pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")

INF, NAN = math.inf, math.nan

FLOATS = [torch.float32, torch.bfloat16, torch.float16, torch.float64]
SMALL_FLOATS = [
    getattr(torch, name)
    for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")
    if hasattr(torch, name)
]
COMPLEX = [torch.complex64, torch.complex128, torch.complex32]
INTEGERS = [
    *(torch.int8, torch.uint8, torch.int16, torch.uint16, torch.int32, torch.uint32, torch.int64, torch.uint64),
    torch.bool,
]
DTYPES = [*FLOATS, *SMALL_FLOATS, *COMPLEX, *INTEGERS]

SPECIAL = [0.0, -0.0, 1.0, -1.0, NAN, INF, -INF, 1e30, -1e30, 1e-30, 3e38, 1e-40, 1e-45, 65504.0, 6e-8, 1e200, 5e-324]

Layout = Callable[[Tensor], Tensor]
LAYOUTS: dict[str, Layout] = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.transpose(0, -1),
    "permuted": lambda x: x.permute(*range(1, x.dim()), 0),
    "every second": lambda x: x[..., ::2],
    "every third row": lambda x: x[::3],
    "every second everywhere": lambda x: x[tuple(slice(None, None, 2) for _ in x.shape)],
    "without its edges": lambda x: x[tuple(slice(length > 1, None) for length in x.shape)],
    "expanded rows": lambda x: x[:1].expand(7, *x.shape[1:]),
    "expanded columns": lambda x: x[..., :1].expand(*x.shape[:-1], 5),
    "expanded outside": lambda x: x.expand(3, *x.shape),
    "windows": lambda x: x.reshape(-1).unfold(0, min(3, x.numel()), 1),
    "channels last": lambda x: x.reshape(1, 1, *x.shape).transpose(1, -1).contiguous().transpose(1, -1),
    "behind an offset": lambda x: x.reshape(-1)[x.numel() // 2 :],
}


def random_bits(shape: tuple[int, ...], dtype: torch.dtype, seed: int) -> Tensor:
    """Any bits: NaN of any payload, subnormals, integers to their extremes."""
    count = max(1, math.prod(shape))
    bits = np.random.default_rng(seed).integers(0, 256, count * dtype.itemsize, dtype=np.uint8)
    raw = torch.from_numpy(bits & 1 if dtype is torch.bool else bits)
    return raw.view(dtype).reshape(shape)


def near(shape: tuple[int, ...], dtype: torch.dtype, seed: int, centre: float, spread: float) -> Tensor:
    """Numbers around one, as far as the dtype has them."""
    return cast(np.random.default_rng(seed).normal(centre, spread, shape), dtype)


def cast(array: object, dtype: torch.dtype) -> Tensor:
    wide = torch.as_tensor(array, dtype=torch.float64)
    if dtype.is_complex:
        return torch.complex(wide, wide.flip(0) if wide.dim() else wide).to(dtype)
    if dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        return wide.to(dtype)
    return wide.clamp(0, 100).float().to(dtype)


def check(name: str, *tensors: Tensor) -> None:
    for tensor, (summary, counts) in zip(tensors, measured(BACKENDS[name](), *tensors), strict=True):
        wrong = differences(summary, counts, expected_of(tensor))
        assert wrong == [], (tensor.dtype, tensor.shape, tensor.stride())


SIDES = st.sampled_from([1, 2, 3, 7, 8, 13, 15, 16, 17, 31, 33])
SHAPES = st.lists(SIDES, min_size=1, max_size=3).map(tuple)
LENGTHS = [1, 2, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 511, 513, 1009, 4095, 4096, 4097, 4159, 8191]


@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=40, deadline=None)
@given(SHAPES, st.sampled_from(DTYPES), st.sampled_from(list(LAYOUTS)), st.integers(0, 2**32), st.booleans())
def test_any_bits_in_any_layout(
    backend: str, shape: tuple[int, ...], dtype: torch.dtype, layout: str, seed: int, is_wild: bool
) -> None:
    values = random_bits(shape, dtype, seed) if is_wild else near(shape, dtype, seed, 1.0, 3.0)
    check(backend, LAYOUTS[layout](values))


@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(LENGTHS),
    st.sampled_from([*FLOATS, *COMPLEX]),
    st.lists(st.sampled_from(SPECIAL), min_size=1, max_size=4),
    st.integers(0, 2**32),
    st.sampled_from([0.0, 1e-3, 1.0]),
)
def test_special_values_among_others(
    backend: str, length: int, dtype: torch.dtype, special: list[float], seed: int, share: float
) -> None:
    random = np.random.default_rng(seed)
    array = np.where(random.random(length) < share, random.choice(special, length), random.normal(size=length))
    array[seed % length] = special[0]
    check(backend, cast(array, dtype))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_length_and_0_d(backend: str, dtype: torch.dtype) -> None:
    tensors = [near((length,), dtype, length, 3.0, 1.0) for length in LENGTHS]
    check(backend, near((), dtype, 1, 3.0, 1.0), *tensors, *(random_bits((length,), dtype, 5) for length in LENGTHS))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout(backend: str, layout: str) -> None:
    shapes = ((5, 6, 8), (3, 9, 140), (2, 3, 4, 5), (70, 90))
    tensors = [near(shape, dtype, 2, 1.0, 3.0) for shape in shapes for dtype in DTYPES]
    check(backend, *(LAYOUTS[layout](tensor) for tensor in tensors))


# What rounding in one direction adds up to shows where all values are alike.
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("value", [1 / 3, 0.1, 0.7, 1.999, 1e-19, 1.1e-22, 3.1e-39, 1.7e19, 1.9e19, 3e38])
def test_many_that_are_alike(backend: str, dtype: torch.dtype, value: float) -> None:
    tensor = torch.full((300_001,), value, dtype=torch.float64).to(dtype)
    (found, counts), (one, _) = measured(BACKENDS[backend](), tensor, tensor[:1])
    assert one.maximum is not None
    assert (found.maximum, found.minimum) == (one.maximum, one.maximum)
    assert counts.nan == 0
    assert found.mean == pytest.approx(one.maximum, rel=1e-6, abs=0)
    assert found.norm == pytest.approx(one.maximum * math.sqrt(300_001), rel=1e-6, abs=0)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor([2**63 - 1, -(2**63), 0]),
        torch.tensor([2**53 + 1, 2**53]),
        torch.tensor([2**64 - 1, 1], dtype=torch.uint64),
        torch.tensor([2**32 - 1, 1], dtype=torch.uint32),
        torch.tensor([1e308] * 40, dtype=torch.float64),
        torch.tensor([1e308, -1e308, 1e200, 1.0, 1e-200], dtype=torch.float64),
        torch.tensor([1e-200, 1e-310, 5e-324], dtype=torch.float64),
        torch.tensor([1e308] * 5000, dtype=torch.float64),
        torch.tensor([1e-200] * 5000, dtype=torch.float64),
        torch.tensor([1e200 + 1e200j, 1e-200j], dtype=torch.complex128),
        torch.tensor([complex(INF, NAN), complex(NAN, 1), complex(-INF, 0), 0j]),
        torch.tensor([3 + 4j, 5 - 12j]).conj(),
        torch.tensor([3 + 4j, 5 - 12j]).conj().imag,
        torch.tensor([3 + 4j]).conj().imag,
        torch.tensor([complex(0, INF), complex(0, -1)]).conj().imag,
        torch._neg_view(torch.tensor([-(2**31), 5], dtype=torch.int64)),
        torch.full((5000,), -INF),
        torch.full((64, 300), -INF).t(),
        torch.zeros(5000),
        -torch.zeros(100),
        torch.tensor([1.0]).expand(4, 5, 6),
        torch.tensor(True).expand(70000),
        torch.tensor([[True], [False]]).expand(2, 70000),
        torch.arange(40.0).as_strided((3, 4, 2), (1, 0, 7), 5),
        torch.ones([1] * 60 + [3]).transpose(0, 60),
        torch.ones(2, 3)[:, 1],
    ],
    ids=lambda tensor: f"{tensor.dtype}-{'x'.join(map(str, tensor.shape[:4]))}",
)
def test_known_cases(backend: str, tensor: Tensor) -> None:
    check(backend, tensor)


@pytest.mark.parametrize("dtype", SMALL_FLOATS, ids=str)
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_float_of_eight_bits(backend: str, dtype: torch.dtype) -> None:
    check(backend, *torch.split(torch.arange(256, dtype=torch.uint8).view(dtype), 1))


@pytest.mark.parametrize("backend", [name for name in BACKENDS if name.startswith("compiled")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool], ids=str)
def test_more_elements_than_31_bits_count(backend: str, dtype: torch.dtype) -> None:
    tensor = torch.tensor([2, 0, 1]).to(dtype)[:, None, None].expand(3, 2**16, 2**16)
    ((found, counts),) = measured(BACKENDS[backend](), tensor)
    assert (found.maximum, found.minimum, counts.zero) == (True if dtype is torch.bool else 2, 0, 2**32)
    if dtype is not torch.bool:
        assert found.mean == 1.0
        assert found.norm == pytest.approx(math.sqrt(5) * 2**16)


@pytest.mark.parametrize("backend", [name for name in BACKENDS if name.startswith("compiled")])
def test_places_beyond_31_bits(backend: str) -> None:
    # The system gives memory for the pages that are touched, which are three.
    base = torch.empty(2**32 + 1, dtype=torch.uint8)
    for number, place in enumerate((0, 2**31, 2**32), 5):
        base[place] = number
    check(backend, base[:: 2**31])


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_values_stay_as_they_are(backend: str) -> None:
    tensors = [random_bits((70001,), dtype, 3) for dtype in DTYPES]
    before = [tensor.clone() for tensor in tensors]
    measured(BACKENDS[backend](), *tensors)
    for tensor, copy in zip(tensors, before, strict=True):
        assert torch.equal(tensor.view(torch.uint8), copy.view(torch.uint8))


@pytest.mark.parametrize("backend", BACKENDS)
def test_many_threads_find_the_same(backend: str) -> None:
    shared = BACKENDS[backend]()
    tensors = [near((length,), dtype, 1, 1.0, 2.0) for length in (3, 1000, 100_000) for dtype in FLOATS]
    alone = measured(shared, *tensors)
    found: list[object] = []

    def measure() -> None:
        found.extend(measured(shared, *tensors) for _ in range(5))

    threads = [threading.Thread(target=measure) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [alone] * 40
