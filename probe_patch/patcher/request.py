"""What a user asks ``apply`` for, and what the opening marker of a patched file remembers of it."""

import json
from dataclasses import dataclass

from probe_patch import __version__
from probe_patch.debuggers import BUILTIN, DEBUGGERS, DebuggerName
from probe_patch.dump_format import PHASE_FOLDERS, Phase
from probe_patch.errors import WrongUsage

ALL_PHASES: tuple[Phase, ...] = tuple(PHASE_FOLDERS)


@dataclass(frozen=True)
class Request:
    """Which phases to dump, the config.json to use when the environment names none, and which debugger records.

    Attributes:
        phases: in the order in which slime runs them; none where they mean nothing, as for SGLang.
        config: an absolute path, or None.
        version: the version of probe-patch that writes (or wrote) the blocks.
        debugger: which one the blocks drive.
    """

    phases: tuple[Phase, ...] = ALL_PHASES
    config: str | None = None
    version: str = __version__
    debugger: DebuggerName = BUILTIN

    def detail(self) -> tuple[tuple[str, object], ...]:
        """What an opening marker says of it, as ``from_detail`` reads it."""
        phases = (("phases", ",".join(self.phases)),) if self.phases else ()
        return (("version", self.version), *phases, ("config", self.config), ("debugger", self.debugger))

    @classmethod
    def from_detail(cls, detail: str | None) -> "Request | None":
        """The request written in an opening marker; None where it cannot be read."""
        try:
            values = json.loads(detail or "")
            version, config = values["version"], values["config"]
            if not isinstance(version, str) or not isinstance(config, str | None):
                return None
            phases = parse_phases(values["phases"]) if "phases" in values else ()
            # Before there was a choice, markers did not speak of it.
            return cls(phases, config, version, parse_debugger(values.get("debugger", BUILTIN)))
        except (ValueError, KeyError, TypeError, AttributeError, WrongUsage):
            return None


def parse_phases(text: str) -> tuple[Phase, ...]:
    """``"actor, ref"`` to ``("ref", "actor")``.

    Raises:
        WrongUsage: an unknown phase, or none at all.
    """
    asked = [name.strip() for name in text.split(",")]
    unknown = [name for name in asked if name not in ALL_PHASES]
    if unknown:
        allowed = ", ".join(ALL_PHASES)
        raise WrongUsage(
            f"--phases: {unknown[0]!r} is no phase; give one or more of {allowed}, with commas between them"
        )
    return tuple(phase for phase in ALL_PHASES if phase in asked)


def parse_debugger(text: str) -> DebuggerName:
    """One of ``DEBUGGERS``.

    Raises:
        WrongUsage: it is none of them.
    """
    found = next((name for name in DEBUGGERS if name == text), None)
    if found is None:
        raise WrongUsage(f"--debugger: {text!r} is no debugger; give {' or '.join(DEBUGGERS)}")
    return found
