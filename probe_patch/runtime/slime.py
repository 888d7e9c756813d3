"""What the lines in a patched slime actor call.

Making a ``Probe`` is cheap: torch and the config are only touched by ``debugger``, when an actor begins its ``init``.
Everything here but a bad config, which must stop the run before it costs anything, keeps its failures to itself.
"""

from __future__ import annotations

import functools
import inspect
import os
import weakref
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from probe_patch.debuggers import BUILTIN
from probe_patch.dump_format import PHASE_FOLDERS, Phase
from probe_patch.runtime.log import LOGGER
from probe_patch.runtime.missing import why_missing

if TYPE_CHECKING:
    from collections.abc import Callable

    from probe_patch.debuggers import DebuggerName
    from probe_patch.runtime.driven import Debugger

P = ParamSpec("P")
T = TypeVar("T")


class Rollout:
    """One call of ``train_actor``: which phases have begun in it."""

    def __init__(self, rollout_id: int | None) -> None:
        self.rollout_id = rollout_id
        self.begun: set[Phase] = set()


class Probe:
    """One per patched module. The arguments are what ``apply`` was given; ``config`` is a path or None."""

    def __init__(self, phases: tuple[Phase, ...], config: str | None, debugger: DebuggerName = BUILTIN) -> None:
        self._phases = phases
        self._config = config
        self._debugger = debugger
        self._rollouts: weakref.WeakKeyDictionary[Debugger, Rollout] = weakref.WeakKeyDictionary()
        self._warned: set[str] = set()

    def debugger(self, role: str) -> Debugger | None:
        """The actor's debugger; None for the critic, which has no phases.

        Raises:
            ConfigError: the config cannot be read or served, or its dump path cannot be written.
            SystemFailed: the debugger is not installed.
        """
        if role == "critic":
            return None
        from probe_patch.config import find_config
        from probe_patch.runtime.driven import make_debugger

        return make_debugger(self._debugger, find_config(os.environ, "train", self._config))

    def start(self, actor: Any, phase: Phase) -> None:
        """Record the actor's model from here on as ``phase``, and no other one."""
        debugger = _debugger_of(actor)
        if debugger is None:
            return
        try:
            from probe_patch.runtime.occasion import TrainingPhase
            from probe_patch.runtime.ranks import identify

            rollout = self._rollouts.setdefault(debugger, Rollout(None))
            rollout.begun.add(phase)
            debugger.service.look_again()
            folder = debugger.config.folder() / PHASE_FOLDERS[phase]
            debugger.service.start(actor.model, identify(None), folder, TrainingPhase(phase, rollout.rollout_id))
        except Exception as error:
            debugger.service.note("starting", error)

    def stop(self, actor: Any, phase: Phase) -> None:
        """The phase is over: write its dump."""
        debugger = _debugger_of(actor)
        if debugger is not None:
            debugger.service.stop(None)

    def rollout(self, function: Callable[P, T]) -> Callable[P, T]:
        """Decorate ``train_actor`` (or ``train``): each call is one step, however it ends and whatever ran in it."""
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def awaited(*args: P.args, **kwargs: P.kwargs) -> Any:
                self._enter(args, kwargs)
                try:
                    result = await function(*args, **kwargs)
                except BaseException as error:
                    self._leave(args, error)
                    raise
                self._leave(args, None)
                return result

            return awaited  # type: ignore[return-value]

        @functools.wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> T:
            self._enter(args, kwargs)
            try:
                result = function(*args, **kwargs)
            except BaseException as error:
                self._leave(args, error)
                raise
            self._leave(args, None)
            return result

        return called

    def _enter(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        actor = args[0] if args else None
        debugger = _debugger_of(actor)
        if debugger is not None:
            first = args[1] if len(args) > 1 else kwargs.get("rollout_id")
            self._rollouts[debugger] = Rollout(first if isinstance(first, int) else None)
        elif actor is not None and not hasattr(actor, "debugger") and getattr(actor, "role", None) != "critic":
            self._warn("init", f"{type(actor).__name__} replaces init, so nothing is recorded; call super().init in it")

    def _leave(self, args: tuple[Any, ...], error: BaseException | None) -> None:
        debugger = _debugger_of(args[0] if args else None)
        if debugger is None:
            return
        try:
            from probe_patch.runtime.ranks import identify

            if error is None:
                debugger.service.note_missed_stop()
            debugger.service.stop(error)
            if error is None and debugger.service.selects_this_step(identify(None)):
                self._warn_of_missing(self._rollouts.pop(debugger, Rollout(None)), getattr(args[0], "args", None))
        except Exception as failure:
            debugger.service.note("ending the rollout", failure)
        debugger.service.step()

    def _warn_of_missing(self, rollout: Rollout, slime_args: object) -> None:
        if getattr(slime_args, "debug_rollout_only", False):
            return
        for phase in self._phases:
            if phase not in rollout.begun:
                self._warn(phase, f"phase {phase} was asked for but did not run: {why_missing(phase, slime_args)}")

    def _warn(self, kind: str, sentence: str) -> None:
        if kind not in self._warned:
            self._warned.add(kind)
            LOGGER.warning("probe-patch: %s", sentence)


def _debugger_of(actor: object) -> Debugger | None:
    """The actor's debugger if it is ours: a subclass may have skipped our line in ``init``, or set its own."""
    try:
        candidate = getattr(actor, "debugger", None)
    except Exception:
        return None
    if candidate is None:
        return None
    from probe_patch.runtime.driven import is_driven

    return candidate if is_driven(candidate) else None
