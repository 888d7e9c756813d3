"""The debuggers of a process, and methods that find theirs when they are called on the class, as msProbe's are."""

from __future__ import annotations

import functools
import threading
import weakref
from typing import TYPE_CHECKING, Any, Concatenate, Final, Generic, ParamSpec, TypeVar

from probe_patch.runtime.log import LOGGER

if TYPE_CHECKING:
    from collections.abc import Callable

    from probe_patch.runtime.debugger import PrecisionDebugger

P = ParamSpec("P")
T = TypeVar("T")


class Made:
    """The debuggers alive. A process's only one is kept alive: whoever calls methods on the class need not hold it."""

    def __init__(self) -> None:
        self._alive: weakref.WeakSet[PrecisionDebugger] = weakref.WeakSet()
        self._only: PrecisionDebugger | None = None
        self._lock = threading.Lock()
        self._said: set[str] = set()

    def add(self, debugger: PrecisionDebugger) -> None:
        with self._lock:
            self._alive.add(debugger)
            self._only = None  # lets the one before go, if nobody else holds it
            self._only = debugger if len(self._alive) == 1 else None

    def only(self, method: str) -> PrecisionDebugger | None:
        """The process's one debugger, for this method called on the class; None, which is said once, without one."""
        with self._lock:
            alive = list(self._alive)
        if len(alive) == 1:
            return alive[0]
        if method not in self._said:
            self._said.add(method)
            LOGGER.warning(
                "probe-patch: PrecisionDebugger.%s() was called on the class, and this process has %s; %s",
                method,
                f"{len(alive)} debuggers" if alive else "no debugger",
                "call it on the one you mean" if alive else "make one first",
            )
        return None


MADE: Final = Made()


class _OnClassToo(Generic[P, T]):
    """A method, and what stands for its result where it is called on the class without a debugger."""

    def __init__(self, function: Callable[Concatenate[Any, P], T], otherwise: Callable[[], T]) -> None:
        functools.update_wrapper(self, function)  # type: ignore[arg-type]
        self._function = function
        self._otherwise = otherwise

    def __get__(self, debugger: object | None, owner: type) -> Callable[P, T]:
        if debugger is not None:
            return self._function.__get__(debugger, owner)  # type: ignore[no-any-return]
        called: Callable[P, T] = functools.partial(self._on_class, owner)
        return functools.update_wrapper(called, self._function)

    def _on_class(self, owner: type, *args: Any, **kwargs: Any) -> T:
        if args and isinstance(args[0], owner):
            return self._function(*args, **kwargs)
        debugger = MADE.only(self._function.__name__)
        return self._otherwise() if debugger is None else self._function(debugger, *args, **kwargs)


def on_class_too(
    otherwise: Callable[[], T],
) -> Callable[[Callable[Concatenate[Any, P], T]], _OnClassToo[P, T]]:
    """Decorate a method of ``PrecisionDebugger``; ``otherwise`` gives what it returns where there is no debugger."""
    return lambda function: _OnClassToo(function, otherwise)


def nothing() -> None:
    """``otherwise`` of methods that return nothing."""
