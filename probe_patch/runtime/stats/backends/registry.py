"""Which backend measures on which device: the quickest there is, or the one that the environment asks for."""

import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Final, cast

import torch

from probe_patch.errors import ConfigError
from probe_patch.runtime.log import LOGGER
from probe_patch.runtime.stats.backends import Backend
from probe_patch.runtime.stats.backends.reference import Reference

VARIABLE: Final = "PROBE_PATCH_STATS_BACKEND"

REFERENCE: Final = "reference"

MODULES: Final[Mapping[str, str]] = {
    name: f"probe_patch.runtime.stats.backends.{name}" for name in ("triton", "npu", "cpu", REFERENCE)
}
"""Where the backends are; each module has ``make(device, counts)``."""

_FOR_DEVICES: Final[Mapping[str, str]] = {"cuda": "triton", "npu": "npu", "cpu": "cpu"}

Make = Callable[[torch.device, bool], Backend]


@dataclass(frozen=True)
class Found:
    """What measures on one device.

    Attributes:
        shortcoming: why it is not what was to be had there, in a sentence; None where it is.
    """

    backend: Backend
    shortcoming: str | None


class Backends:
    """What one process measures with. What it falls short of is said once in the log.

    Args:
        chosen: the backend to use on the devices it can serve; None for the best of each device.
    """

    def __init__(self, chosen: str | None = None, modules: Mapping[str, str] = MODULES) -> None:
        self._chosen = chosen
        self._modules = modules
        self._found: dict[tuple[torch.device, bool], Found] = {}
        self._said: set[str] = set()

    def on(self, device: torch.device, counts: bool) -> Found:
        """What measures on this device, with or without counts; never raises."""
        found = self._found.get((device, counts))
        if found is None:
            found = self._found[device, counts] = self._find(device, counts)
        return found

    def after_failure(self, device: torch.device, counts: bool, error: Exception) -> Found:
        """What measures on this device from now on, as what did so has raised this."""
        failed = self.on(device, counts)
        if failed.backend.name == REFERENCE:
            return failed
        reason = f"{failed.backend.name} failed on {device.type} ({_described(error)})"
        found = self._found[device, counts] = self._fallen_back(device, counts, reason)
        return found

    def _find(self, device: torch.device, counts: bool) -> Found:
        usual = _FOR_DEVICES.get(device.type, REFERENCE)
        if self._chosen is not None and self._chosen != usual:
            # What was asked for may serve other devices too, as the reference does; where it does not, the usual goes
            # on: a model on an accelerator has tensors on the host as well.
            with contextlib.suppress(Exception):
                return self._had(self._make(self._chosen)(device, counts))
        try:
            return self._had(self._make(usual)(device, counts))
        except Exception as error:
            asked = f"{VARIABLE}={usual}: " if self._chosen == usual else ""
            return self._fallen_back(device, counts, f"{asked}{usual} cannot be had on {device.type} ({error})")

    def _make(self, name: str) -> Make:
        return cast("Make", import_module(self._modules[name]).make)

    def _had(self, backend: Backend) -> Found:
        if backend.shortcoming is not None:
            self._say(backend.shortcoming)
        return Found(backend, backend.shortcoming)

    def _fallen_back(self, device: torch.device, counts: bool, reason: str) -> Found:
        sentence = f"{reason}; plain torch measures there, which is slower"
        self._say(sentence)
        return Found(Reference(device, counts), sentence)

    def _say(self, sentence: str) -> None:
        """Once per process."""
        if sentence not in self._said:
            self._said.add(sentence)
            # A handler of the run's own may raise; meta.json still tells.
            with contextlib.suppress(Exception):
                LOGGER.warning("probe-patch: statistics: %s", sentence)


def backends_of_the_process() -> Backends:
    """Those that the environment asks for now; the same object each time it asks for the same."""
    return _backends(os.environ.get(VARIABLE) or None)


def check_chosen_backend() -> None:
    """Try what the environment asks for before the run costs anything.

    Raises:
        ConfigError: there is no such backend, or its module cannot be imported.
    """
    name = os.environ.get(VARIABLE)
    if not name:
        return
    if name not in MODULES:
        raise ConfigError(f"{VARIABLE} is {name!r}; set it to one of {', '.join(MODULES)}, or unset it")
    try:
        import_module(MODULES[name])
    except Exception as error:
        raise ConfigError(
            f"{VARIABLE} is {name!r}, which cannot be had here ({error}); install what is missing, or unset it"
        ) from None


@cache
def _backends(chosen: str | None) -> Backends:
    return Backends(chosen)


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
