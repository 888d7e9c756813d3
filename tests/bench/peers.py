"""The ways to record a training step that are measured against each other, configured by one and the same file."""

import contextlib
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from torch import nn

PeerName: TypeAlias = Literal["probe-patch", "msProbe"]
PEERS: tuple[PeerName, ...] = ("probe-patch", "msProbe")


@dataclass(frozen=True)
class Mode:
    """What is recorded: config.json's level and summary_mode; forwards, backwards and parameters of all calls."""

    level: Literal["L0", "L1", "mix"]
    summary: Literal["statistics", "md5"] = "statistics"

    def __str__(self) -> str:
        return self.level if self.summary == "statistics" else f"{self.level}, {self.summary}"


MODES = (Mode("L0"), Mode("L1"), Mode("mix"), Mode("mix", "md5"))


@dataclass(frozen=True)
class Recording:
    """One way to record a step: called before it, and after it until the files are on disk."""

    start: Callable[[nn.Module], None]
    end: Callable[[], None]


def nothing() -> Recording:
    return Recording(lambda _: None, lambda: None)


def recording(peer: PeerName, mode: Mode, folder: Path, steps: tuple[int, ...] = ()) -> Recording:
    """Set a peer up to dump below ``folder``: all steps, or these alone."""
    config = _config(folder, mode, steps)
    return _ours(config) if peer == "probe-patch" else _msprobes(config)


def last_dump(folder: Path) -> Path:
    """The folder of the last rank that was written."""
    return max(folder.glob("step*/*/dump.json"), key=lambda path: path.stat().st_mtime).parent


def _config(folder: Path, mode: Mode, steps: tuple[int, ...]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    section = {"scope": [], "list": [], "tensor_list": [], "data_mode": ["all"], "summary_mode": mode.summary}
    document = {"task": "statistics", "dump_path": str(folder), "rank": [], "step": list(steps), "level": mode.level}
    config = folder / "config.json"
    config.write_text(json.dumps({**document, "statistics": section}))
    return config


def _ours(config: Path) -> Recording:
    from probe_patch.runtime import PrecisionDebugger

    debugger = PrecisionDebugger(config)

    def end() -> None:
        debugger.stop()
        debugger.step()

    return Recording(debugger.start, end)


def _msprobes(config: Path) -> Recording:
    from msprobe.pytorch import PrecisionDebugger

    with contextlib.redirect_stdout(io.StringIO()):
        debugger = PrecisionDebugger(config_path=str(config))

    def start(model: nn.Module) -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            debugger.start(model=model)

    def end() -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            debugger.stop()
            debugger.step()

    return Recording(start, end)
