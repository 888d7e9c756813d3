"""What runs inside training and inference processes.

Importing this package is cheap and never imports torch: what it offers is loaded at first use.
"""

from typing import TYPE_CHECKING, Any

# First of all: it decides from what the modules of this package are imported.
from probe_patch.runtime import compiled as _compiled  # noqa: F401

if TYPE_CHECKING:
    from probe_patch.runtime.debugger import PrecisionDebugger
    from probe_patch.runtime.seeding import seed_all

__all__ = ["PrecisionDebugger", "seed_all"]


def __getattr__(name: str) -> Any:
    if name == "PrecisionDebugger":
        from probe_patch.runtime.debugger import PrecisionDebugger

        return PrecisionDebugger
    if name == "seed_all":
        from probe_patch.runtime.seeding import seed_all

        return seed_all
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
