"""meta.json says who wrote the dump, when, and where it stood among the others."""

import os
import platform
import socket
import sys
from datetime import datetime
from types import ModuleType

import pytest
import torch

import probe_patch
from probe_patch.runtime import compiled
from tests.interpreted import Replace
from tests.runtime.conftest import Record
from tests.runtime.toys import Mlp, ones


def test_who_and_when(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "4")
    meta = record(Mlp(), ones(1, 4)).meta
    expected = {
        "tool": "probe-patch",
        "tool_version": probe_patch.__version__,
        "torch_version": torch.__version__,
        "python_version": platform.python_version(),
        "capture": "compiled" if compiled.SHORTCOMING is None else "interpreted",
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "rank": 0,
        "world_size": 4,
        "phase": None,
        "step": 0,
        "rollout_id": None,
        "records": ["forward", "backward"],
        "entries": 5,
        "tensors": 16,
        "micro_batches": 1,
        "ended_by_exception": None,
        "problems": [],
    }
    assert {name: meta[name] for name in expected} == expected
    started, ended = (datetime.fromisoformat(meta[name]) for name in ("started", "ended"))
    assert started.tzinfo is not None
    assert started <= ended


def megatron(initialised: bool) -> ModuleType:
    state = ModuleType("megatron.core.parallel_state")
    numbers = {
        "get_tensor_model_parallel": (1, 2),
        "get_pipeline_model_parallel": (0, 1),
        "get_data_parallel": (3, 4),
        "get_context_parallel": (0, 1),
    }
    functions: dict[str, object] = {"model_parallel_is_initialized": lambda: initialised}
    for name, (rank, size) in numbers.items():
        functions[f"{name}_rank"] = lambda rank=rank: rank
        functions[f"{name}_world_size"] = lambda size=size: size
    state.__dict__.update(functions)
    return state


@pytest.mark.parametrize(
    ("initialised", "expected"),
    [
        (False, {}),
        (
            True,
            {
                "tp": {"rank": 1, "size": 2},
                "pp": {"rank": 0, "size": 1},
                "dp": {"rank": 3, "size": 4},
                "cp": {"rank": 0, "size": 1},
            },
        ),
    ],
)
def test_megatrons_groups_are_asked_only_once_they_exist(
    record: Record, monkeypatch: pytest.MonkeyPatch, initialised: bool, expected: dict[str, object]
) -> None:
    monkeypatch.setitem(sys.modules, "megatron.core.parallel_state", megatron(initialised))
    assert record(Mlp(), ones(1, 4)).meta["parallel"] == expected


def test_versions_of_targets_in_use_are_written(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    slime, sglang = ModuleType("slime"), ModuleType("sglang")
    slime.__dict__["__version__"] = "0.3.1"
    monkeypatch.setitem(sys.modules, "slime", slime)
    monkeypatch.setitem(sys.modules, "sglang", sglang)
    assert record(Mlp(), ones(1, 4)).meta["target_versions"] == {"slime": "0.3.1", "sglang": None}


@pytest.mark.parametrize(
    ("shortcoming", "said"), [(None, []), (compiled.NEVER_BUILT, [f"probe-patch: {compiled.NEVER_BUILT}"])]
)
def test_plain_python_is_said_once_per_process(
    record: Record,
    replace: Replace,
    caplog: pytest.LogCaptureFixture,
    shortcoming: str | None,
    said: list[str],
) -> None:
    replace(compiled, "SHORTCOMING", shortcoming)
    compiled.say_shortcoming.cache_clear()
    record(Mlp(), ones(1, 4))
    compiled.say_shortcoming()
    assert caplog.messages == said
