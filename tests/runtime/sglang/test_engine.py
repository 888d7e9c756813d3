"""Whose process it is, in every way that SGLang's versions keep it."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from probe_patch.runtime.ranks import GroupPlace
from probe_patch.runtime.sglang.engine import ModelState, engine_of, state_of


def settings(**given: Any) -> SimpleNamespace:
    return SimpleNamespace(**{"tp_size": 1, "dp_size": 1, "node_rank": 0, "nnodes": 1, **given})


def context(parallel: object, serving: object = None) -> ModuleType:
    module = ModuleType("sglang.srt.runtime_context")
    module.__dict__.update(get_parallel=lambda: parallel, get_serving=lambda: serving)
    return module


# version: (runner, arguments of __init__, the process's context), then rank, size, tp, pp, dp, ep
CASES: dict[str, tuple[Any, dict[str, Any], object, tuple[int, int], dict[str, tuple[int, int]]]] = {
    "0.2.0": (
        SimpleNamespace(gpu_id=3, tp_rank=1, tp_size=2, nccl_port=9, server_args=settings(tp_size=2)),
        {},
        None,
        (1, 2),
        {"tp": (1, 2), "pp": (0, 1), "dp": (0, 1), "ep": (0, 1)},
    ),
    "0.4.6.post2: pipeline": (
        SimpleNamespace(gpu_id=3, tp_rank=1, tp_size=2, pp_rank=1, pp_size=2, server_args=settings(tp_size=2)),
        {},
        None,
        (3, 4),
        {"tp": (1, 2), "pp": (1, 2), "dp": (0, 1), "ep": (0, 1)},
    ),
    "0.5.9: a replica knows its number from an argument only": (
        SimpleNamespace(gpu_id=3, tp_rank=1, tp_size=2, dp_size=1, server_args=settings(tp_size=2, dp_size=4)),
        {"dp_rank": 2},
        None,
        (5, 8),
        {"tp": (1, 2), "pp": (0, 1), "dp": (2, 4), "ep": (0, 1)},
    ),
    "0.5.9: attention's replicas share the group": (
        SimpleNamespace(
            gpu_id=3, tp_rank=3, tp_size=4, server_args=settings(tp_size=4, dp_size=2, enable_dp_attention=True)
        ),
        {"dp_rank": None},
        None,
        (3, 4),
        {"tp": (3, 4), "pp": (0, 1), "dp": (1, 2), "ep": (0, 1)},
    ),
    "0.5.9: experts": (
        SimpleNamespace(tp_rank=3, tp_size=4, moe_ep_rank=1, moe_ep_size=2, server_args=settings(tp_size=4, ep_size=2)),
        {},
        None,
        (3, 4),
        {"tp": (3, 4), "pp": (0, 1), "dp": (0, 1), "ep": (1, 2)},
    ),
    "0.5.16: one object of ranks": (
        SimpleNamespace(
            ps=SimpleNamespace(tp_rank=1, tp_size=2, pp_rank=0, pp_size=1, dp_rank=1, attn_dp_size=1),
            server_args=settings(tp_size=2, dp_size=2),
        ),
        {},
        None,
        (3, 4),
        {"tp": (1, 2), "pp": (0, 1), "dp": (1, 2), "ep": (0, 1)},
    ),
    "0.5.22: the process's context": (
        SimpleNamespace(server_args=settings(tp_size=4, dp_size=1)),
        {},
        SimpleNamespace(tp_rank=2, tp_size=4, pp_rank=0, pp_size=1, dp_rank=None, attn_dp_rank=1, attn_dp_size=2),
        (2, 4),
        {"tp": (2, 4), "pp": (0, 1), "dp": (1, 2), "ep": (0, 1)},
    ),
}


@pytest.mark.parametrize("version", CASES)
def test_ranks_are_found_where_the_version_keeps_them(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    runner, arguments, parallel, place, groups = CASES[version]
    if parallel is not None:
        monkeypatch.setitem(sys.modules, "sglang.srt.runtime_context", context(parallel))
    engine = engine_of(runner, arguments)
    assert (engine.rank, engine.size) == place
    assert engine.places == {name: GroupPlace(*numbers) for name, numbers in groups.items()}


def test_every_process_of_an_engine_has_a_rank_of_its_own() -> None:
    ranks = [
        engine_of(
            SimpleNamespace(tp_rank=tp, tp_size=2, pp_rank=pp, pp_size=3, server_args=settings(tp_size=2, dp_size=2)),
            {"dp_rank": dp},
        ).rank
        for dp in range(2)
        for pp in range(3)
        for tp in range(2)
    ]
    assert ranks == list(range(12))


class Moody:
    """A context whose names were not published raises."""

    def __getattr__(self, name: str) -> object:
        raise ValueError(name)


def test_what_cannot_be_read_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sglang.srt.runtime_context", context(Moody(), Moody()))
    engine = engine_of(Moody(), {})
    assert (engine.rank, engine.size, engine.gpu_id, engine.host, engine.role) == (0, 1, None, None, "null")
    assert state_of(Moody()) == ModelState(None, None, None)


def test_the_state_is_the_current_one(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = SimpleNamespace(forward_pass_id=3, server_args=settings(model_path="old"))
    assert state_of(runner) == ModelState(3, "old", None)
    runner.server_args.model_path = "new"
    monkeypatch.setitem(sys.modules, "sglang.srt.runtime_context", context(None, SimpleNamespace(weight_version="v7")))
    assert state_of(runner) == ModelState(3, "new", "v7")


@pytest.mark.parametrize(
    ("mode", "role"), [("null", "null"), ("prefill", "prefill"), ("decode", "decode"), (None, "null"), ("odd", "null")]
)
def test_the_role_in_a_disaggregated_setup(mode: str | None, role: str) -> None:
    assert engine_of(SimpleNamespace(server_args=settings(disaggregation_mode=mode)), {}).role == role
