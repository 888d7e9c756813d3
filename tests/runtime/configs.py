"""Debuggers by config.json."""

import json
from pathlib import Path
from typing import Any

from torch import nn

from probe_patch.runtime.debugger import PrecisionDebugger
from tests.runtime.dumps import DumpOnDisk, only_rank, read_dump


def debugger_with(folder: Path, **keys: Any) -> PrecisionDebugger:
    """Records every step at level L0, unless the keys say otherwise, into ``folder``/dump."""
    folder.mkdir(exist_ok=True)
    path = folder / "config.json"
    path.write_text(json.dumps({"level": "L0", "dump_path": str(folder / "dump")} | keys), encoding="utf-8")
    return PrecisionDebugger(path)


def recorded(folder: Path, model: nn.Module, *args: Any, keys: dict[str, Any], **kwargs: Any) -> DumpOnDisk:
    """The dump of one run of a model with a debugger of these keys."""
    debugger = debugger_with(folder, **keys)
    debugger.start(model)
    model(*args, **kwargs)
    debugger.stop()
    return read_dump(only_rank(folder / "dump" / "step0"))
