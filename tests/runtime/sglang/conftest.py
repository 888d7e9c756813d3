import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.sglang.stand_in import PlainRunner, patched

Configure = Callable[..., Path]


@pytest.fixture
def configure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Configure:
    """Writes the rollout side's config.json, which records every step, and gives the folder it records into."""

    def write(
        rollout: dict[str, Any] | None = None, step: list[int] | None = None, rank: list[int] | None = None
    ) -> Path:
        document: dict[str, Any] = {"dump_path": str(tmp_path / "dump"), "level": "L0"}
        document |= {"step": step or [], "rank": rank or [], "rollout": rollout or {}}
        path = tmp_path / "config.json"
        path.write_text(json.dumps(document))
        monkeypatch.setenv("PROBE_PATCH_ROLLOUT_CONFIG", str(path))
        return tmp_path / "dump"

    return write


@pytest.fixture
def runner_class() -> type[PlainRunner]:
    """The stand-in as the patch leaves it."""
    return patched(PlainRunner)
