"""What the lines in a patched SGLang call, and our SGLang plugin.

Making a ``Probe`` is cheap: torch and the config are only touched once a model runner is built. Everything here but a
bad config, which must stop the server before it costs anything, keeps its failures to itself.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import os
import weakref
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar

from probe_patch.debuggers import BUILTIN
from probe_patch.runtime.log import LOGGER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from probe_patch.debuggers import DebuggerName
    from probe_patch.runtime.driven import Debugger
    from probe_patch.runtime.sglang.watch import Watch

P = ParamSpec("P")
T = TypeVar("T")
Runner = TypeVar("Runner")

MARK: Final = "__probe_patch__"
"""What a function that is already ours carries, so that patch and plugin together record once."""


class Probe:
    """One per patched module. The arguments are what ``apply`` was given; ``config`` is a path or None."""

    def __init__(self, config: str | None, debugger: DebuggerName = BUILTIN) -> None:
        self._config = config
        self._debugger = debugger
        self._watches: weakref.WeakKeyDictionary[Any, Watch] = weakref.WeakKeyDictionary()

    def init(self, function: Callable[Concatenate[Runner, P], None]) -> Callable[Concatenate[Runner, P], None]:
        """Decorate ``ModelRunner.__init__``: once it has returned, the runner's forwards are watched.

        Raises:
            ConfigError: when a runner is built, before its model is loaded: the config cannot be read or served, or its
                dump path cannot be written.
            SystemFailed: then as well, where the debugger is not installed.
        """
        if hasattr(function, MARK):
            return function

        @functools.wraps(function)
        def initialised(runner: Runner, /, *args: P.args, **kwargs: P.kwargs) -> None:
            from probe_patch.config import find_config
            from probe_patch.runtime.driven import make_debugger

            debugger = make_debugger(self._debugger, find_config(os.environ, "rollout", self._config))
            function(runner, *args, **kwargs)
            self._watch(runner, _arguments(function, (runner, *args), kwargs), debugger)

        setattr(initialised, MARK, True)
        return initialised

    def forward(self, function: Callable[Concatenate[Runner, P], T]) -> Callable[Concatenate[Runner, P], T]:
        """Decorate ``ModelRunner.forward``: a forward that counts is recorded and is one step, however it ends."""
        if hasattr(function, MARK):
            return function
        batch_name = _second_parameter(function)

        @functools.wraps(function)
        def recorded(runner: Runner, /, *args: P.args, **kwargs: P.kwargs) -> T:
            watch = self._watch_of(runner)
            if watch is None:
                return function(runner, *args, **kwargs)
            batch = args[0] if args else kwargs.get(batch_name)
            if not watch.begin(runner, batch, (*args[1:], *kwargs.values())):
                return function(runner, *args, **kwargs)
            try:
                result = function(runner, *args, **kwargs)
            except BaseException as error:
                watch.end(error)
                raise
            watch.end(None)
            return result

        setattr(recorded, MARK, True)
        return recorded

    def _watch_of(self, runner: object) -> Watch | None:
        try:
            return self._watches.get(runner)
        except TypeError:  # a runner that cannot be a key was never watched
            return None

    def _watch(self, runner: Any, arguments: Mapping[str, object], debugger: Debugger) -> None:
        from probe_patch.runtime.sglang.watch import watch_for

        if getattr(runner, "msprobe_debugger", None) is not None:
            LOGGER.warning(
                "probe-patch: --msprobe-dump-config is given and DUMP_ON is on: msProbe records this server and "
                "probe-patch does not; leave the flag out to have it the other way round"
            )
            return
        try:
            watch = watch_for(runner, arguments, debugger)
            if watch is not None:
                self._watches[runner] = watch
                # When the runner goes, or at the interpreter's exit.
                weakref.finalize(runner, watch.say_if_nothing_recorded)
        except Exception as error:
            LOGGER.warning(
                "probe-patch: nothing will be recorded into %s (%s: %s)",
                debugger.config.dump_path,
                type(error).__name__,
                error,
            )


def _arguments(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Mapping[str, object]:
    try:
        return inspect.signature(function).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return kwargs


def _second_parameter(function: Callable[..., Any]) -> str:
    """``forward_batch``, or ``batch`` in versions before 0.3.3: some call it by name."""
    return next(itertools.islice(inspect.signature(function).parameters, 1, None), "forward_batch")
