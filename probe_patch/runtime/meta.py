"""meta.json: who wrote a dump, when, of what, and what went wrong with it."""

import importlib.metadata
import json
import os
import platform
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final

import probe_patch
from probe_patch.runtime.compiled import SHORTCOMING
from probe_patch.runtime.json_text import named_floats
from probe_patch.runtime.problems import Problem
from probe_patch.runtime.ranks import Identity

# Module that shows the package is in use -> its distributions, most likely first.
_TARGETS: Final[Mapping[str, tuple[str, ...]]] = {
    "slime": ("slime",),
    "miles": ("miles", "miles-rl"),
    "megatron.core": ("megatron-core",),
    "sglang": ("sglang",),
}


@dataclass(frozen=True)
class Meta:
    """The contents of meta.json; times are UTC, ISO 8601.

    Attributes:
        about: what the occasion adds.
        recomputed: how many module forwards inside backward passes were left out.
        micro_batches: how many outermost passes through the model there were; None where modules are not recorded.
        ended_by: the type of the exception that ended the recording, or None.
    """

    step: int
    about: Mapping[str, object]
    identity: Identity
    records: Sequence[str]
    entries: int
    tensors: int
    recomputed: int
    micro_batches: int | None
    started: datetime
    ended: datetime
    ended_by: str | None
    problems: tuple[Problem, ...]

    def document(self) -> str:
        """JSON that every reader takes: the occasion's floats that are no numbers are strings.

        Raises:
            TypeError: the occasion has something that has no form in JSON.
        """
        torch = sys.modules.get("torch")
        members = {
            "tool": "probe-patch",
            "tool_version": probe_patch.__version__,
            "torch_version": None if torch is None else str(torch.__version__),
            "python_version": platform.python_version(),
            "capture": "compiled" if SHORTCOMING is None else "interpreted",
            "target_versions": _target_versions(),
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "rank": self.identity.rank,
            "world_size": self.identity.world_size,
            "parallel": {name: asdict(place) for name, place in self.identity.places.items()},
            "step": self.step,
            **self.about,
            "records": self.records,
            "entries": self.entries,
            "tensors": self.tensors,
            "recomputed": self.recomputed,
            "micro_batches": self.micro_batches,
            "started": self.started.isoformat(),
            "ended": self.ended.isoformat(),
            "ended_by_exception": self.ended_by,
            "problems": [asdict(problem) for problem in self.problems],
        }
        return json.dumps(named_floats(members), indent=1, allow_nan=False) + "\n"


def _target_versions() -> dict[str, str | None]:
    """Of what is imported already: importing a target to ask its version would change the run."""
    loaded = [(module, names) for module, names in _TARGETS.items() if module in sys.modules]
    return {module: _version(module, names) for module, names in loaded}


def _version(module: str, distributions: tuple[str, ...]) -> str | None:
    stated = getattr(sys.modules[module], "__version__", None)
    if isinstance(stated, str):
        return stated
    return next((version for name in distributions if (version := _installed_version(name)) is not None), None)


def _installed_version(distribution: str) -> str | None:
    """Asked for by name: reading the metadata of everything installed takes longer than a small dump."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
