"""Tensors of the host that are measured as they come: the same numbers as any backend's, or none."""

from collections.abc import Iterator
from importlib.util import find_spec

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from probe_patch.runtime.problems import Problems
from probe_patch.runtime.stats.backends import cpu
from probe_patch.runtime.stats.kinds import kind_of
from probe_patch.runtime.stats.rows import DEVICES, ROWS_PER_BLOCK
from probe_patch.runtime.stats.table import NO_ROW, StatisticsTable
from probe_patch.runtime.stats.tensor_calls import tensor_calls
from tests.kernels.oracle import differences, expected_of
from tests.kernels.test_numbers import LAYOUTS, SHAPES, near, random_bits
from tests.needs import needs

KNOWN = [
    *(torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.complex64, torch.complex128),
    *(torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool),
]


@pytest.fixture(scope="module", autouse=True, params=["by torch's functions", "by its methods"])
def _asked(request: pytest.FixtureRequest) -> Iterator[None]:
    """How a tensor is asked for what DLPack does not tell."""
    has_table = hasattr(Tensor, "__dlpack_c_exchange_api__")
    needs(has_table and find_spec("probe_patch.runtime.stats.host_tensors") is not None, "it is not compiled here")
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "by its methods":
            patch.setattr(cpu, "tensor_calls", lambda: None)
        else:
            needs(tensor_calls() is not None, "this torch has not all of the functions")
        yield


def looked_at(tensor: Tensor) -> tuple[torch.dtype, torch.Size, bool]:
    return tensor.dtype, tensor.shape, tensor.requires_grad


def table() -> StatisticsTable:
    return StatisticsTable(Problems(set()), counts=True, describe=looked_at)


def check(*tensors: Tensor) -> None:
    rows = table()
    taken = [(rows.take(tensor), rows.row) for tensor in tensors]
    assert [description for description, _ in taken] == [looked_at(tensor) for tensor in tensors]
    readings = rows.read()
    for tensor, (_, row) in zip(tensors, taken, strict=True):
        kind = kind_of(tensor)
        assert kind is not None
        found = readings.summary(row, kind, tensor.dim() == 0), readings.counts(row)
        assert differences(*found, expected_of(tensor)) == [], (tensor.dtype, tensor.shape, tensor.stride())


@settings(max_examples=150, deadline=None)
@given(SHAPES, st.sampled_from(KNOWN), st.sampled_from(list(LAYOUTS)), st.integers(0, 2**32), st.booleans())
def test_any_bits_in_any_layout(
    shape: tuple[int, ...], dtype: torch.dtype, layout: str, seed: int, is_wild: bool
) -> None:
    values = random_bits(shape, dtype, seed) if is_wild else near(shape, dtype, seed, 1.0, 3.0)
    check(LAYOUTS[layout](values))


@pytest.mark.parametrize("dtype", KNOWN, ids=str)
def test_0_d_small_and_large(dtype: torch.dtype) -> None:
    check(*(near(shape, dtype, 1, 3.0, 1.0) for shape in ((), (1,), (3, 1), (1 << 16,), (300, 400))))
    check(near((300, 400), dtype, 2, 3.0, 1.0).t()[::2])


def test_one_behind_the_other_over_several_blocks() -> None:
    many = [torch.full((2,), float(number)) for number in range(ROWS_PER_BLOCK + 3)]
    check(*many)


def test_what_looks_alike_is_described_once() -> None:
    described = []

    def describe(tensor: Tensor) -> int:
        described.append(looked_at(tensor))
        return len(described)

    rows = StatisticsTable(Problems(set()), describe=describe)
    ones = torch.ones(2, 3)
    alike = [ones, ones + 1, ones.t().contiguous().t()]
    others = [ones.t(), ones.view(6), ones.double(), ones.clone().requires_grad_(), ones[:1], ones.unsqueeze(0)]
    assert [rows.take(tensor) for tensor in (*alike, *others)] == [1, 1, 1, 2, 3, 4, 5, 6, 7]


def test_each_of_thousands_of_shapes_is_described_as_itself() -> None:
    shapes: list[tuple[int, ...]] = [(rows, columns) for rows in range(50) for columns in range(50)]
    shapes += [(1,) * dimensions for dimensions in range(2, 65)]
    rows = table()
    for shape in (*shapes, *shapes):
        assert rows.take(torch.empty(shape, dtype=torch.uint8)) == (torch.uint8, torch.Size(shape), False)
    readings = rows.read()
    assert readings.has(DEVICES * 2 * (49 * 49 + 63) - DEVICES)


def test_an_empty_tensor_has_no_row() -> None:
    rows = table()
    assert rows.take(torch.empty(0, 3)) == (torch.float32, torch.Size([0, 3]), False)
    assert rows.row == NO_ROW
    assert rows.take(torch.ones(1)) is not None
    assert rows.row == 0


def cut_short(bytes_left: int) -> Tensor:
    tensor = torch.ones(8, 4)
    view = tensor[2:]
    tensor.untyped_storage().resize_(bytes_left)
    return view


def fake(tensor: Tensor) -> Tensor:
    with FakeTensorMode() as mode:
        return mode.from_tensor(tensor)


OTHERS = {
    "negated": lambda: torch.ones(3, dtype=torch.complex64).conj().imag,
    "sparse": lambda: torch.eye(3).to_sparse(),
    "sparse by rows": lambda: torch.eye(3).to_sparse_csr(),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
    "zeros without memory": lambda: torch._efficientzerotensor(3),
    "functional": lambda: torch._to_functional_tensor(torch.ones(3)),
    "fake": lambda: fake(torch.ones(3)),
    "without memory": lambda: torch.ones(3, device="meta"),
    "quantized": lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8),
    "float8": lambda: torch.ones(3).to(torch.float8_e4m3fn),
    "complex32": lambda: torch.ones(3, dtype=torch.complex32),
    "uint64": lambda: torch.ones(3, dtype=torch.uint64),
    "more dimensions than 64": lambda: torch.ones([1] * 65),
    "freed": lambda: cut_short(0),
    "cut short": lambda: cut_short(8 * 4 * 4 - 1),
}


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental", "ignore:.*quantize.*:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*quantize.*:UserWarning")
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning")
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
@pytest.mark.parametrize("name", OTHERS)
def test_everything_else_is_left_to_others(name: str) -> None:
    rows = table()
    assert rows.take(OTHERS[name]()) is None
    assert rows.take(torch.ones(2)) is not None
    assert rows.row == 0


def test_a_whole_storage_behind_an_offset_is_not_cut_short() -> None:
    check(cut_short(8 * 4 * 4))


def test_while_others_wait_nothing_comes_between() -> None:
    rows = table()
    kind = kind_of(torch.ones(1))
    assert kind is not None
    waiting = rows.add(torch.ones(1), kind)
    assert rows.take(torch.ones(1)) is None
    rows.launch()
    assert rows.take(torch.full((1,), 5.0)) is not None
    assert (waiting, rows.row) == (0, DEVICES)
    readings = rows.read()
    assert [readings.summary(row, kind, False).maximum for row in (waiting, rows.row)] == [1.0, 5.0]


def test_inside_a_transform_what_is_wrapped_is_left_to_others() -> None:
    taken = []

    def watched(x: Tensor) -> Tensor:
        taken.append(table().take(x))
        return x.sum()

    torch.func.vmap(watched)(torch.ones(2, 3))
    torch.func.grad(watched)(torch.ones(3))
    assert taken == [None, None]
