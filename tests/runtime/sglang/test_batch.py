"""What every version's batch tells."""

import enum
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from probe_patch.runtime.sglang.batch import copy_inputs, mode_of, token_count
from tests.runtime.sglang.stand_in import ForwardMode, decode, extend

EarlyMode = enum.IntEnum("EarlyMode", ["PREFILL", "EXTEND", "DECODE"])


def early_batch(**given: Any) -> SimpleNamespace:
    """As before 0.3.3: two requests, of which the first has two tokens in the cache."""
    batch = {
        "reqs": [SimpleNamespace(rid="a"), SimpleNamespace(rid="b")],
        "input_ids": torch.tensor([7, 8, 9, 5]),
        "seq_lens": torch.tensor([5, 1]),
        "position_ids_offsets": torch.tensor([0, 10]),
    }
    return SimpleNamespace(**(batch | given))


@pytest.mark.parametrize(
    ("batch", "further", "mode"),
    [
        (early_batch(), (EarlyMode["EXTEND"],), "EXTEND"),
        (early_batch(forward_mode=None), (EarlyMode["DECODE"],), "DECODE"),
        (early_batch(forward_mode=ForwardMode["MIXED"]), (), "MIXED"),
        (extend(), (False, None), "EXTEND"),
        (extend(mode="TARGET_VERIFY"), (), "TARGET_VERIFY"),
        (SimpleNamespace(), (True, None), "UNKNOWN"),
    ],
)
def test_the_mode(batch: object, further: tuple[object, ...], mode: str) -> None:
    assert mode_of(batch, further) == mode


@pytest.mark.parametrize(
    ("batch", "tokens"),
    [
        (early_batch(), 4),
        (extend(1), 1),
        (decode(6), 6),
        (SimpleNamespace(input_ids=None, input_embeds=torch.zeros(3, 8)), 3),
        (SimpleNamespace(input_ids=None, input_embeds=None, positions=torch.zeros(3, 5)), 5),
        (SimpleNamespace(input_ids=torch.tensor(3)), 1),
        (SimpleNamespace(input_ids=torch.zeros(0, dtype=torch.int64)), 0),
        (None, 0),
    ],
)
def test_the_number_of_tokens(batch: object, tokens: int) -> None:
    assert token_count(batch) == tokens


@pytest.mark.parametrize(
    ("batch", "expected", "request_ids"),
    [
        (
            early_batch(prefix_lens=torch.tensor([2, 0])),
            {
                "input_ids": [7, 8, 9, 5],
                "seq_lens": [5, 1],
                "extend_prefix_lens": [2, 0],
                "positions": [2, 3, 4, 10],
            },
            ("a", "b"),
        ),
        (
            early_batch(prefix_lens_cpu=[2, 0], forward_mode=EarlyMode["EXTEND"]),
            {
                "input_ids": [7, 8, 9, 5],
                "seq_lens": [5, 1],
                "extend_prefix_lens": [2, 0],
                "positions": [2, 3, 4, 10],
            },
            ("a", "b"),
        ),
        (
            early_batch(input_ids=torch.tensor([9, 5]), forward_mode=EarlyMode["DECODE"]),
            {"input_ids": [9, 5], "seq_lens": [5, 1], "positions": [4, 10]},
            ("a", "b"),
        ),
        (
            extend(3),
            {"input_ids": [5, 6, 7], "seq_lens": [3], "extend_prefix_lens": [0], "positions": [0, 1, 2]},
            None,
        ),
        (decode(2), {"input_ids": [9, 9], "seq_lens": [4, 4], "positions": [3, 3]}, None),
        (SimpleNamespace(rids=["x", 5]), {}, ("x", "5")),
        (SimpleNamespace(reqs=[object()]), {}, None),
    ],
)
def test_inputs(batch: object, expected: dict[str, list[int]], request_ids: tuple[str, ...] | None) -> None:
    inputs = copy_inputs(batch)
    assert {name: tensor.tolist() for name, tensor in inputs.tensors.items()} == expected
    assert inputs.request_ids == request_ids


def test_inputs_are_copies() -> None:
    batch = extend(3)
    inputs = copy_inputs(batch)
    batch.positions.add_(7)
    assert inputs.tensors["positions"].tolist() == [0, 1, 2]
