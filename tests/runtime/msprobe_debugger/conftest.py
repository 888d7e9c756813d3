import importlib.metadata
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.runtime.msprobe_debugger.stand_in import StandInDebugger, modules, process_of_its_own

Configure = Callable[..., Path]


@pytest.fixture
def msprobe(monkeypatch: pytest.MonkeyPatch) -> type[StandInDebugger]:
    """The stand-in for msProbe 26.2.0 is installed."""
    debugger_class = process_of_its_own()
    for name, module in modules(debugger_class).items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "26.2.0")
    monkeypatch.setenv("RANK", "0")
    return debugger_class


@pytest.fixture
def configure(tmp_path: Path) -> Configure:
    """Writes a config.json that dumps into ``tmp_path / "dump"``, with these keys besides."""

    def write(**keys: object) -> Path:
        path = tmp_path / "config.json"
        path.write_text(json.dumps({"dump_path": str(tmp_path / "dump"), **keys}))
        return path

    return write
