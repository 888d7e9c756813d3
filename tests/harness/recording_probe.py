"""The stand-in for ``probe_patch.runtime.slime.Probe``: writes down what the patched actor asks of it."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from probe_patch.debuggers import DebuggerName
from tests.harness.trace import Recorder


class ProbeMaker(Protocol):
    """Makes what the patched file gets when it calls ``Probe``: the stand-in, or a real one with a fake debugger."""

    def __call__(
        self, recorder: Recorder, *, phases: tuple[str, ...], config: str | None, debugger: DebuggerName
    ) -> object: ...


@dataclass(frozen=True)
class RecordingDebugger:
    """What ``self.debugger`` is in a recorded run."""

    role: str


class RecordingProbe:
    """Records every call in the trace, one event each, and judges none of them.

    ``phases``, ``config`` and the name of the debugger are what the patch was made with.
    """

    def __init__(
        self, recorder: Recorder, *, phases: tuple[str, ...], config: str | None, debugger: DebuggerName
    ) -> None:
        self.recorder = recorder
        self.phases = phases
        self.config = config
        self.driven = debugger

    def debugger(self, role: str) -> RecordingDebugger | None:
        self.recorder.events.append(("init", role))
        return None if role == "critic" else RecordingDebugger(role)

    def start(self, actor: object, phase: str) -> None:
        self.recorder.events.append(("start", phase))

    def stop(self, actor: object, phase: str) -> None:
        self.recorder.events.append(("stop", phase))

    def rollout(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*positional: object, **options: object) -> object:
            self.recorder.events.append(("enter",))
            try:
                return function(*positional, **options)
            finally:
                self.recorder.events.append(("finish",))
                self.recorder.events.append(("step",))

        return call
