"""The msProbe of this environment: its debugger, or the sentence that says what to install."""

import importlib
import importlib.metadata
import inspect
from pathlib import Path
from typing import Any

from probe_patch.debuggers import MSPROBE_OLDEST, MSPROBE_PACKAGE
from probe_patch.errors import ConfigError, SystemFailed


def msprobe_version() -> str | None:
    """The version installed; None where its package does not say."""
    try:
        return importlib.metadata.version(MSPROBE_PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        return None


def precision_debugger_class() -> Any:
    """msProbe's ``PrecisionDebugger``.

    Raises:
        SystemFailed: it cannot be imported, whatever it is that fails, or is older than any that can be driven.
    """
    try:
        found = importlib.import_module("msprobe.pytorch").PrecisionDebugger
    except Exception as error:
        upgrade = "" if msprobe_version() is None else "-U "
        raise SystemFailed(
            "DUMP_ON is on, and this patch drives msProbe, which cannot be imported here "
            f"({type(error).__name__}: {error}): pip install {upgrade}{MSPROBE_PACKAGE} on every node, or apply the "
            "patch again without --debugger"
        ) from error
    if not hasattr(found, "set_init_step") or "rank_id" not in inspect.signature(found.start).parameters:
        raise SystemFailed(
            f"msProbe {msprobe_version() or 'of this version'} cannot be driven, {MSPROBE_OLDEST} and later can: "
            f"pip install -U {MSPROBE_PACKAGE} on every node, or apply the patch again without --debugger"
        )
    return found


def make_debugger(debugger_class: Any, config: Path, shown: str) -> Any:
    """msProbe's debugger of this process, which has one: an earlier one is given again, with its own settings.

    Args:
        debugger_class: as ``precision_debugger_class`` gives it.
        config: what it reads.
        shown: what messages call that.

    Raises:
        ConfigError: msProbe refuses the config, or has done so before in this process.
    """
    try:
        debugger = debugger_class(str(config))
    except Exception as error:
        raise ConfigError(f"{shown}: msProbe refuses it ({type(error).__name__}: {error}); see its log above") from None
    if getattr(debugger, "service", None) is None:
        raise ConfigError(f"{shown}: msProbe refused a config.json in this process before, and takes no other one")
    return debugger
