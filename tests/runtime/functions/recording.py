"""Runs some work while its functions are recorded."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn

from probe_patch.runtime.capture.capture import Capture
from probe_patch.runtime.capture.functions.custom import CustomApis
from probe_patch.runtime.capture.functions.risk import RiskLevel
from probe_patch.runtime.capture.selection import Selection
from probe_patch.runtime.capture.wanted import Wanted
from probe_patch.runtime.problems import Problem, Problems
from probe_patch.runtime.store import Store
from tests.runtime.dumps import entries_of


@dataclass(frozen=True)
class Recorded:
    """What a store held in the end."""

    data: dict[str, Any]
    parents: dict[str, str | None]
    problems: tuple[Problem, ...]

    def names(self) -> list[str]:
        """The functions in the order in which they began, without their numbers."""
        return [entry.rpartition(".forward")[0].rpartition(".")[0] for entry in self.parents]


class Recording:
    """One recording, which a test starts and stops where it likes."""

    def __init__(
        self,
        risk: RiskLevel = "ALL",
        model: nn.Module | None = None,
        backward: bool = False,
        records_modules: bool = True,
        namespaces: frozenset[str] | None = None,
        custom_apis: CustomApis | None = None,
    ) -> None:
        modules = model is not None and records_modules
        wanted = Wanted(modules=modules, functions=risk, backward=backward, namespaces=namespaces)
        self._store = Store(Problems(set()), wanted, Selection())
        self._model = model
        self._capture = Capture(self._store, custom_apis)

    def start(self) -> None:
        self._capture.attach(self._model)

    def stop(self) -> Recorded:
        self._capture.detach()
        self._store.flush()
        data = entries_of(self._store.lines)
        return Recorded(data, self._store.parents(), self._store.problems.all())


def recorded(
    work: Callable[[], Any],
    risk: RiskLevel = "ALL",
    model: nn.Module | None = None,
    backward: bool = False,
    namespaces: frozenset[str] | None = None,
    custom_apis: CustomApis | None = None,
) -> Recorded:
    """``work`` run once while it is recorded."""
    recording = Recording(risk, model, backward, namespaces=namespaces, custom_apis=custom_apis)
    recording.start()
    try:
        work()
    finally:
        result = recording.stop()
    return result
