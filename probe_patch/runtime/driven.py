"""What the lines in patched files drive: one interface over the debuggers that a patch can name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeGuard

if TYPE_CHECKING:
    from pathlib import Path

    from probe_patch.config.rollout import RolloutSection
    from probe_patch.debuggers import DebuggerName
    from probe_patch.runtime.capture.names import Model
    from probe_patch.runtime.claims import Claim
    from probe_patch.runtime.occasion import Occasion
    from probe_patch.runtime.ranks import Identity


class Settings(Protocol):
    """What was asked for."""

    @property
    def level(self) -> str: ...

    @property
    def rollout(self) -> RolloutSection: ...

    @property
    def dump_path(self) -> str | Path: ...

    @property
    def is_on(self) -> bool:
        """Whether the settings let anything be recorded at the moment."""
        ...

    def folder(self) -> Path:
        """The absolute dump path."""
        ...

    def selects_rank(self, rank: int) -> bool:
        """Whether anything of this rank is to be recorded."""
        ...


class Recording(Protocol):
    """Starts, stops and steps. None of it raises."""

    @property
    def config(self) -> Settings:
        """What is asked for now."""
        ...

    def look_again(self) -> None:
        """Read what is asked for again, where that may change while the process runs. Whoever starts calls it first."""
        ...

    def write_under(self, claim: Claim) -> None:
        """Use this claim, which the caller keeps, for the dump path it is for."""
        ...

    def selects_this_step(self, identity: Identity) -> bool:
        """Whether the step and rank lists take in this process in this step."""
        ...

    def start(self, model: Model | None, identity: Identity, folder: Path, occasion: Occasion) -> None:
        """Record ``model`` into ``folder``/step{N}/rank{R} until ``stop``."""
        ...

    def stop(self, ended_by: BaseException | None) -> None:
        """Write what was recorded; ``ended_by`` is the exception that cut it short."""
        ...

    def step(self) -> None:
        """End the step: the next start belongs to the next one."""
        ...

    def note_missed_stop(self) -> None:
        """If something is still being recorded, say that it went on for too long."""
        ...

    def note(self, kind: str, failure: BaseException | str) -> None:
        """Tell of a failure around the recording; ``kind`` says what we were doing."""
        ...


class Debugger(Protocol):
    """Settings, and the recording that follows them."""

    @property
    def config(self) -> Settings: ...

    @property
    def service(self) -> Recording: ...


def make_debugger(name: DebuggerName, config_path: Path | None) -> Debugger:
    """The debugger of this name.

    Raises:
        ConfigError: the config cannot be read or served, or its dump path cannot be written.
        SystemFailed: the debugger is not installed.
    """
    if name == "msprobe":
        from probe_patch.runtime.msprobe.debugger import MsprobeDebugger

        return MsprobeDebugger(config_path)
    from probe_patch.runtime.debugger import PrecisionDebugger

    return PrecisionDebugger(config_path)


def is_driven(candidate: object) -> TypeGuard[Debugger]:
    """Whether ``candidate`` is one of our debuggers."""
    from probe_patch.runtime.debugger import PrecisionDebugger
    from probe_patch.runtime.msprobe.debugger import MsprobeDebugger

    return isinstance(candidate, PrecisionDebugger | MsprobeDebugger)
