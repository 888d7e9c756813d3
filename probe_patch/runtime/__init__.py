"""What runs inside training and inference processes.

Importing this package is cheap and never imports torch: ``PrecisionDebugger`` is loaded at first use.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from probe_patch.runtime.debugger import PrecisionDebugger

__all__ = ["PrecisionDebugger"]


def __getattr__(name: str) -> Any:
    if name == "PrecisionDebugger":
        from probe_patch.runtime.debugger import PrecisionDebugger

        return PrecisionDebugger
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
