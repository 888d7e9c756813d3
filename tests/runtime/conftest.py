from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch import nn

from probe_patch.runtime.debugger import PrecisionDebugger
from tests.runtime.dumps import DumpOnDisk, read_dump

Record = Callable[..., DumpOnDisk]


@pytest.fixture
def debugger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PrecisionDebugger:
    """Records every step of rank 0 under ``tmp_path``."""
    monkeypatch.setenv("RANK", "0")
    return PrecisionDebugger(dump_path=str(tmp_path / "dump"), step=[])


@pytest.fixture
def record(debugger: PrecisionDebugger, tmp_path: Path) -> Record:
    """Runs a model once with these arguments, recorded, and reads the dump."""

    def run(model: nn.Module, *args: Any, **kwargs: Any) -> DumpOnDisk:
        debugger.start(model)
        model(*args, **kwargs)
        debugger.stop()
        return read_dump(tmp_path / "dump" / "step0" / "rank0")

    return run
