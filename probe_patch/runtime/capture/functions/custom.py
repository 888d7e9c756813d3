"""Functions of the user's own, recorded because ``register_custom_api`` named them."""

from __future__ import annotations

import functools
import inspect
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

import torch

from probe_patch.runtime.capture.functions.call_sites import Arguments
from probe_patch.runtime.capture.functions.trampolines import call_watched, can_be_watched, unwatch, watch
from probe_patch.runtime.capture.names import FunctionName

if TYPE_CHECKING:
    from collections.abc import Callable

    from probe_patch.runtime.capture.forwards import Call
    from probe_patch.runtime.capture.functions.calls import FunctionCalls
    from probe_patch.runtime.capture.session import Session

_ABSENT: Final = object()


@dataclass(frozen=True)
class CustomApi:
    """A function that was named.

    Attributes:
        owner: the module, class or other object that has it.
        attribute: what it is called there.
        label: what it is called in a dump.
    """

    owner: Any
    attribute: str
    label: str


class CustomApis:
    """What was registered with one debugger. It counts from the next start."""

    def __init__(self) -> None:
        self._apis: list[CustomApi] = []

    def add(self, module: object, api_name: str, api_prefix: str | None = None) -> str | None:
        """Record ``module.api_name`` as ``{api_prefix}.{api_name}``; without a prefix the module's name is it.

        Returns:
            Why that cannot be done, as a sentence; None when it is done.
        """
        prefix = api_prefix or getattr(module, "__name__", "Custom")
        if not isinstance(prefix, str):
            return f"register_custom_api: api_prefix is {prefix!r}; it must be a string"
        function = getattr(module, api_name, None) if isinstance(api_name, str) else None
        if not callable(function):
            return f"register_custom_api: {module!r} has no function {api_name!r}; name one that it has"
        if isinstance(function, FunctionType) and not can_be_watched(function):
            return f"register_custom_api: {prefix}.{api_name} is a generator or a coroutine, which does not run at once"
        self.remove(module, api_name)
        self._apis.append(CustomApi(module, api_name, f"{prefix}.{api_name}"))
        return None

    def remove(self, module: object, api_name: str) -> None:
        """Undo ``add``. What was not added is let be."""
        self._apis = [api for api in self._apis if api.owner is not module or api.attribute != api_name]

    def all(self) -> tuple[CustomApi, ...]:
        return tuple(self._apis)


class CustomCapture:
    """The recording of registered functions in one session, from ``attach`` to ``detach``.

    A Python function is watched wherever it was imported to. Anything else (a function in C, an
    ``autograd.Function``'s ``apply``) is replaced at the place that was registered, and is put back afterwards.
    """

    def __init__(self, session: Session, calls: FunctionCalls) -> None:
        self._session = session
        self._calls = calls
        self._watched: list[tuple[FunctionType, _Watcher]] = []
        self._replaced: list[_Replaced] = []

    def attach(self, apis: CustomApis) -> None:
        """Begin; a function that cannot be recorded is left out and noted."""
        for api in apis.all():
            try:
                self._attach(api)
            except Exception as error:  # noqa: PERF203
                self._calls.failed(f"registering {api.label}", error)

    def detach(self) -> None:
        """Put everything back as it was."""
        watched, self._watched = self._watched, []
        for function, watcher in watched:
            if not unwatch(function, watcher):
                self._note(f"somebody else has exchanged the code of {function.__name__} meanwhile")
        replaced, self._replaced = self._replaced, []
        for one in replaced[::-1]:
            if not one.put_back():
                self._note(f"somebody else has replaced {one.api.attribute} of {one.api.owner!r} meanwhile")

    def _attach(self, api: CustomApi) -> None:
        watcher = _Watcher(FunctionName(api.label), self._session, self._calls)
        own = _own(api)
        function = own.__func__ if isinstance(own, staticmethod) else own
        if isinstance(function, FunctionType):
            watch(function, watcher)
            self._watched.append((function, watcher))
        else:
            self._replaced.append(_Replaced(api, own, watcher))

    def _note(self, problem: str) -> None:
        self._session.store.problems.note("stopping", problem)


class _Replaced:
    """A function that a watched one stands in for."""

    def __init__(self, api: CustomApi, own: Any, watcher: _Watcher) -> None:
        self.api = api
        self._own = own
        called = getattr(api.owner, api.attribute)
        stand_in = _stand_in(called, watcher)
        # What a method of a class in C is called with has its object in it already.
        is_bound = inspect.isclass(api.owner) and called is not own
        self._stand_in: Any = staticmethod(stand_in) if is_bound else stand_in
        setattr(api.owner, api.attribute, self._stand_in)

    def put_back(self) -> bool:
        if _own(self.api) is not self._stand_in:
            return False
        if self._own is _ABSENT:
            delattr(self.api.owner, self.api.attribute)
        else:
            setattr(self.api.owner, self.api.attribute, self._own)
        return True


def _own(api: CustomApi) -> Any:
    """What the owner itself has under the name, and not a class above it."""
    return getattr(api.owner, "__dict__", {}).get(api.attribute, _ABSENT)


def _stand_in(function: Callable[..., Any], watcher: _Watcher) -> Callable[..., Any]:
    @functools.wraps(function, updated=())
    def stand_in(*args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            return function(*args, **kwargs)
        return call_watched(function, (watcher,), Arguments(args, kwargs), args, kwargs)

    return stand_in


class _Watcher:
    """Of one function."""

    def __init__(self, name: FunctionName, session: Session, calls: FunctionCalls) -> None:
        self._name = name
        self._session = session
        self._calls = calls

    def begin(self, arguments: Arguments) -> Call | None:
        take = self._session.take_inputs
        return self._calls.begin_watched(self._name, take, arguments, "recording a function's inputs")

    def end(self, call: Call, result: Any) -> None:
        self._calls.end(self._calls.here(), call, result)

    def abandon(self, call: Call) -> None:
        self._calls.abandon(self._calls.here(), call)
