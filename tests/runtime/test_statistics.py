import math
from collections.abc import Callable
from operator import methodcaller
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from probe_patch.runtime.problems import Problems
from probe_patch.runtime.stats.apart import ApartFromTheRun
from probe_patch.runtime.stats.backends import reference
from probe_patch.runtime.stats.kinds import kind_of
from probe_patch.runtime.stats.plain import plain_values
from probe_patch.runtime.stats.rows import ROWS_PER_BLOCK, Readings, Summary
from probe_patch.runtime.stats.table import StatisticsTable

INF, NAN = math.inf, math.nan


def summaries(*tensors: Tensor) -> list[Summary | None]:
    table = StatisticsTable(Problems(set()))
    found: list[Callable[[Readings], Summary] | None] = []
    with ApartFromTheRun():
        for tensor in tensors:
            values = plain_values(tensor)
            kind = None if values is None else kind_of(values)
            if values is None or kind is None:
                found.append(None)
            else:
                row = table.add(values, kind)
                found.append(methodcaller("summary", row, kind, values.dim() == 0))
        readings = table.read()
    return [None if summarise is None else summarise(readings) for summarise in found]


def summary(tensor: Tensor) -> Summary | None:
    return summaries(tensor)[0]


FLOAT_DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2]


@given(
    arrays.arrays(
        np.float64, arrays.array_shapes(max_dims=3, max_side=40), elements=st.floats(-400.0, 400.0, allow_nan=False)
    ),
    st.sampled_from(FLOAT_DTYPES),
    st.sampled_from(
        [lambda x: x, lambda x: x.transpose(0, -1), lambda x: x[..., ::2], lambda x: x.expand(3, *x.shape)]
    ),
)
def test_floats_agree_with_float64(array: np.ndarray, dtype: torch.dtype, view: Callable[[Tensor], Tensor]) -> None:
    tensor = view(torch.from_numpy(array).to(dtype))
    exact = tensor.to(torch.float32).double().numpy() if dtype != torch.float64 else tensor.numpy()
    found = summary(tensor)
    assert found is not None
    assert (found.maximum, found.minimum) == (exact.max(), exact.min())
    assert found.mean == pytest.approx(exact.mean(), rel=1e-6, abs=1e-6 * np.abs(exact).mean())
    assert found.norm == pytest.approx(np.sqrt((exact**2).sum()), rel=1e-6)


@given(
    arrays.arrays(
        st.sampled_from([np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]),
        arrays.array_shapes(max_dims=2, max_side=30),
    )
)
def test_integers_have_exact_extremes_and_a_mean_and_norm(array: np.ndarray) -> None:
    found = summary(torch.from_numpy(array))
    wide = array.astype(np.float64)
    assert found is not None
    assert (found.maximum, found.minimum) == (int(array.max()), int(array.min()))
    assert isinstance(found.maximum, int)
    assert found.mean == pytest.approx(wide.mean(), rel=1e-6, abs=1e-6 * np.abs(wide).mean())
    assert found.norm == pytest.approx(np.sqrt((wide**2).sum()), rel=1e-6)


@pytest.mark.parametrize(
    ("tensor", "expected"),
    [
        (torch.tensor([2**53 + 1, 0]), (2**53 + 1, 0, (2**53 + 1) / 2, float(2**53))),
        (torch.tensor([2**63 - 1, -(2**63)]), (2**63 - 1, -(2**63), 0.0, math.sqrt(2) * 2.0**63)),
        (torch.tensor([2**64 - 1, 1], dtype=torch.uint64), (2**64 - 1, 1, 2.0**63, 2.0**64)),
        (torch.tensor([True, False]), (True, False, None, None)),
        (torch.tensor([True]), (True, True, None, None)),
        (torch.tensor(False), (False, False, None, None)),
        (torch.tensor([3 + 4j, 0j]), (5.0, 0.0, 2.5, 5.0)),
        (torch.tensor([3 + 4j]).conj(), (5.0, 5.0, 5.0, 5.0)),
        (torch.tensor([3 + 4j]).conj().imag, (-4.0, -4.0, -4.0, 4.0)),
        (torch.tensor(-3.5), (-3.5, -3.5, -3.5, -3.5)),
        (torch.tensor(7), (7, 7, 7, 7)),
        (torch.full((100,), 70000.0), (70000.0, 70000.0, 70000.0, 700000.0)),
        (torch.full((2,), 1e30), (1e30, 1e30, 1e30, math.sqrt(2) * 1e30)),
        (torch.full((2,), 1e-30), (1e-30, 1e-30, 1e-30, math.sqrt(2) * 1e-30)),
        (torch.full((4,), 3e38), (3e38, 3e38, 3e38, 6e38)),
        (torch.full((10000,), 600.0, dtype=torch.float16), (600.0, 600.0, 600.0, 60000.0)),
        (torch.full((40000,), 600.0, dtype=torch.float16), (600.0, 600.0, 600.0, 120000.0)),
        (torch.full((4,), 1e200, dtype=torch.float64), (1e200, 1e200, 1e200, 2e200)),
        (torch.full((4,), -1e-200, dtype=torch.float64), (-1e-200, -1e-200, -1e-200, 2e-200)),
        (torch.full((4,), 1e200 + 0j, dtype=torch.complex128), (1e200, 1e200, 1e200, 2e200)),
        (torch.full((4,), 3e-200 + 4e-200j, dtype=torch.complex128), (5e-200, 5e-200, 5e-200, 1e-199)),
        (torch.zeros(4, dtype=torch.float64), (0.0, 0.0, 0.0, 0.0)),
        (torch.tensor([-INF, 1e200], dtype=torch.float64), (1e200, -INF, -INF, INF)),
        (torch.tensor([NAN, 1e200], dtype=torch.float64), (NAN, NAN, NAN, NAN)),
        (torch.tensor([INF, 1.0]), (INF, 1.0, INF, INF)),
        (torch.tensor([-INF, INF]), (INF, -INF, NAN, INF)),
        (torch.tensor([NAN, 1.0]), (NAN, NAN, NAN, NAN)),
        (torch.nn.Parameter(torch.ones(4)), (1.0, 1.0, 1.0, 2.0)),
        (torch.tensor([2.0]).expand(8, 2), (2.0, 2.0, 2.0, 8.0)),
        (torch.nested.nested_tensor([torch.ones(1), torch.ones(3)], layout=torch.jagged), (1.0, 1.0, 1.0, 2.0)),
    ],
)
def test_known_numbers(tensor: Tensor, expected: tuple[float, ...]) -> None:
    found = summary(tensor)
    assert found is not None
    for number, wanted in zip(found, expected, strict=True):
        assert number == (wanted if wanted is None else pytest.approx(wanted, rel=1e-6, nan_ok=True))
        assert type(number) is type(wanted)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.zeros(0, 3),
        torch.empty(3, device="meta"),
        torch.eye(3).to_sparse(),
        torch.zeros(3, dtype=torch.uint8).view(torch.float4_e2m1fn_x2),
    ],
    ids=["empty", "meta", "sparse", "fp4"],
)
def test_tensors_without_statistics(tensor: Tensor) -> None:
    assert summary(tensor) is None


def test_large_tensors_are_reduced_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROBE_PATCH_STATS_BACKEND", "reference")
    floats = torch.linspace(-3, 5, 1001, dtype=torch.float32)
    whole = summaries(floats, floats.to(torch.int64), floats.to(torch.complex64), floats.to(torch.bfloat16))
    monkeypatch.setattr(reference, "CHUNK_ELEMENTS", 64)
    pieces = summaries(floats, floats.to(torch.int64), floats.to(torch.complex64), floats.to(torch.bfloat16))
    for found, wanted in zip(pieces, whole, strict=True):
        assert found is not None and wanted is not None
        assert found[:2] == wanted[:2]
        assert found[2:] == pytest.approx(wanted[2:], rel=1e-12)


def test_the_norm_of_many_pieces_keeps_to_float64s_range(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROBE_PATCH_STATS_BACKEND", "reference")
    monkeypatch.setattr(reference, "CHUNK_ELEMENTS", 2)
    for size in (1e200, 1e-200):
        found = summary(torch.full((16,), size, dtype=torch.float64))
        assert found is not None and found.norm == pytest.approx(4 * size, rel=1e-12)


class Allocating(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Keeps the element counts of new tensors; views, which share their base's memory, are not new."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.sizes: list[int] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        known = {arg.untyped_storage().data_ptr() for arg in tree_leaves(args) if isinstance(arg, Tensor)}
        new = [one for one in tree_leaves(made) if one.untyped_storage().data_ptr() not in known]
        self.sizes += [one.untyped_storage().nbytes() // one.element_size() for one in new]
        return made


BASE = torch.linspace(-3, 5, 4 * 300).reshape(4, 300)


@pytest.mark.parametrize(
    "values",
    [
        BASE[:1].expand(64, 300),
        BASE[:, :1].expand(4, 3000),
        BASE[0, 7].expand(1000),
        BASE.t(),
        BASE[:, ::3],
        BASE.reshape(4, 30, 10).permute(2, 0, 1),
        BASE.as_strided((500, 200), (1, 2)),
    ],
    ids=["rows", "columns", "scalar", "transposed", "strided", "permuted", "overlapping"],
)
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint16, torch.bool, torch.complex64]
)
def test_no_copy_is_larger_than_a_piece(monkeypatch: pytest.MonkeyPatch, values: Tensor, dtype: torch.dtype) -> None:
    monkeypatch.setenv("PROBE_PATCH_STATS_BACKEND", "reference")
    base = torch.empty(0, dtype=dtype).set_(
        BASE.abs().mul(20).to(dtype).untyped_storage(), values.storage_offset(), values.shape, values.stride()
    )
    whole = summary(base.contiguous())
    monkeypatch.setattr(reference, "CHUNK_ELEMENTS", 64)
    kind = kind_of(base)
    assert kind is not None
    floats, integers = torch.empty(4, dtype=torch.float64), torch.empty(6, dtype=torch.int64)
    with Allocating() as allocating:
        reference.measure(base, kind, floats, integers)
    found = summary(base)
    assert found is not None and whole is not None
    assert found[:2] == whole[:2]
    assert (found.mean or 0, found.norm or 0) == pytest.approx((whole.mean or 0, whole.norm or 0), rel=1e-12)
    # One number per piece is collected too.
    assert max(allocating.sizes) <= max(64, 2 * base.numel() // 64 + 64)


def test_rows_stay_apart_over_many_blocks() -> None:
    count = 2 * ROWS_PER_BLOCK + 3
    found = summaries(*(torch.tensor([number]) for number in range(count)))
    assert [row.maximum for row in found if row is not None] == list(range(count))


def test_one_copy_reads_every_row(monkeypatch: pytest.MonkeyPatch) -> None:
    copies = []
    original = Tensor.cpu

    def counted(tensor: Tensor) -> Tensor:
        copies.append(tuple(tensor.shape))
        return original(tensor)

    monkeypatch.setattr(Tensor, "cpu", counted)
    summaries(*(torch.ones(3) for _ in range(50)))
    assert [rows for rows, _ in copies] == [50]


def test_measuring_never_asks_the_device_for_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("item", "tolist", "cpu", "numpy", "__bool__", "__float__", "__int__"):
        monkeypatch.setattr(Tensor, name, lambda *_: pytest.fail("the host waited for the device"))
    problems = Problems(set())
    table = StatisticsTable(problems)
    for tensor in (torch.ones(3), torch.arange(3), torch.tensor([True]), torch.ones(2, dtype=torch.complex64)):
        kind = kind_of(tensor)
        assert kind is not None
        table.add(tensor, kind)
    table.launch()
    assert problems.all() == ()


def test_a_table_that_was_read_holds_no_device_memory() -> None:
    table = StatisticsTable(Problems(set()))
    values = torch.ones(3)
    kind = kind_of(values)
    assert kind is not None
    row = table.add(values, kind)
    assert table.read().summary(row, kind, False).norm == pytest.approx(math.sqrt(3))
    assert table.read().devices == []
    assert table.add(values, kind) == 0


def test_autocast_and_inference_mode_change_nothing() -> None:
    values = torch.full((1000,), 1.001)
    with torch.autocast("cpu", torch.bfloat16):
        assert summary(values) == summary(values.clone())
        assert summary(values) is not None
    with torch.inference_mode():
        inside = summary(values * 1)
    assert inside == summary(values)
    assert inside is not None and inside.mean == pytest.approx(1.0010000467300415, rel=1e-6)


@pytest.mark.parametrize("left", [0, 8, 39])
@pytest.mark.parametrize("of", [lambda whole: whole, lambda whole: whole[::3], lambda whole: whole[5:]])
def test_a_tensor_whose_storage_was_cut_has_no_numbers(left: int, of: Callable[[Tensor], Tensor]) -> None:
    whole = torch.ones(10)
    tensor = of(whole)
    assert summary(tensor) is not None
    whole.untyped_storage().resize_(left)
    assert summary(tensor) is None
