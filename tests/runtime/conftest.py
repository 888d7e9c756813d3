import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch import nn

from probe_patch.runtime.debugger import PrecisionDebugger
from tests.runtime.dumps import DumpOnDisk, read_dump

Configured = Callable[..., PrecisionDebugger]
Record = Callable[..., DumpOnDisk]
AskedFor = Callable[..., PrecisionDebugger]


@pytest.fixture
def debugger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PrecisionDebugger:
    """Records every step of rank 0 under ``tmp_path``."""
    monkeypatch.setenv("RANK", "0")
    return PrecisionDebugger(dump_path=str(tmp_path / "dump"), step=[])


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Configured:
    """Makes debuggers as ``debugger``, of this level and these data modes."""
    monkeypatch.setenv("RANK", "0")

    def make(level: str, *data_mode: str) -> PrecisionDebugger:
        path = tmp_path / f"{level}-{'-'.join(data_mode)}.json"
        keys = {"level": level, "dump_path": str(tmp_path / "dump"), "statistics": {"data_mode": list(data_mode)}}
        path.write_text(json.dumps(keys), encoding="utf-8")
        return PrecisionDebugger(path)

    return make


@pytest.fixture
def asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AskedFor:
    """Makes debuggers as ``debugger``, of a config.json with these keys besides."""
    monkeypatch.setenv("RANK", "0")

    def make(**keys: object) -> PrecisionDebugger:
        path = tmp_path / "config.json"
        path.write_text(json.dumps({"level": "L0", "dump_path": str(tmp_path / "dump")} | keys), encoding="utf-8")
        return PrecisionDebugger(path)

    return make


@pytest.fixture
def record(debugger: PrecisionDebugger, tmp_path: Path) -> Record:
    """Runs a model once with these arguments, recorded, and reads the dump."""

    def run(model: nn.Module, *args: Any, **kwargs: Any) -> DumpOnDisk:
        debugger.start(model)
        model(*args, **kwargs)
        debugger.stop()
        return read_dump(tmp_path / "dump" / "step0" / "rank0")

    return run
