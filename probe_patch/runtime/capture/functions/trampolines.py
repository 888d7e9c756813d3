"""Python functions watched without replacing them: their code is exchanged while somebody watches, then put back.

``torch.distributed`` and users' own functions are not functions that a torch function mode sees, and what has been
imported early (``from torch.distributed import all_reduce``) cannot be found to be replaced. The function object stays:
its identity, its attributes and pickling are what they were, and so is its signature.

The code put in takes the same parameters and hands them to ``through``. It imports that by name, as torch.compile
can follow an import and not an object among a code's constants; where it compiles it goes straight through.
"""

from __future__ import annotations

import inspect
import itertools
import sys
import threading
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeGuard
from weakref import WeakKeyDictionary

import torch

from probe_patch.runtime.capture.functions.call_sites import Arguments, as_passed, call_at, without_defaults

if TYPE_CHECKING:
    from collections.abc import Callable

_SUSPENDING: Final = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class Watcher(Protocol):
    """Is told of the calls of a function. Its methods never raise."""

    def begin(self, arguments: Arguments) -> Any:
        """A call begins. What this gives back, if not None, is handed to one of the others."""
        ...

    def end(self, call: Any, result: Any) -> None:
        """It has given a result."""
        ...

    def abandon(self, call: Any) -> None:
        """It has raised."""
        ...


_lock: Final = threading.Lock()
_next_key: Final = itertools.count(1)
_keys: Final[WeakKeyDictionary[Callable[..., Any], int]] = WeakKeyDictionary()
# By key. A function's code is made once, so that compiled code that knows it need not be compiled at every start.
_trampolines: Final[dict[int, CodeType]] = {}
_originals: Final[dict[int, FunctionType]] = {}
_watchers: Final[dict[int, tuple[Watcher, ...]]] = {}


def can_be_watched(function: object) -> TypeGuard[FunctionType]:
    """Whether it is a Python function that runs to its end when it is called."""
    return isinstance(function, FunctionType) and not function.__code__.co_flags & _SUSPENDING


def watch(function: FunctionType, watcher: Watcher) -> None:
    """Tell ``watcher`` of the function's calls, on every thread, until ``unwatch``."""
    with _lock:
        key = _keys[function] = _keys.get(function) or next(_next_key)
        before = _watchers.get(key, ())
        _watchers[key] = (*before, watcher)
        if not before:
            _exchange(function, key)


def unwatch(function: FunctionType, watcher: Watcher) -> bool:
    """Stop that; with the last watcher goes the exchanged code. False where somebody else has exchanged it since."""
    with _lock:
        key = _keys[function]
        _watchers[key] = tuple(other for other in _watchers[key] if other is not watcher)
        if _watchers[key]:
            return True
        if function.__code__ is not _trampolines[key]:
            return False
        function.__code__ = _originals[key].__code__
        return True


def through(key: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the function of this key. Only trampolines call this."""
    if torch.compiler.is_compiling():
        return _originals[key](*args, **kwargs)
    original, watchers = _originals[key], _watchers[key]
    if not watchers:
        return original(*args, **kwargs)
    return call_watched(original, watchers, _arguments(original, args, kwargs), args, kwargs)


def call_watched(
    function: Callable[..., Any],
    watchers: tuple[Watcher, ...],
    arguments: Arguments,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Call a function with ``args`` and ``kwargs``, and tell of it.

    Args:
        arguments: the same, as its caller passed them.
    """
    begun = [(watcher, call) for watcher in watchers if (call := watcher.begin(arguments)) is not None]
    try:
        result = function(*args, **kwargs)
    except BaseException:
        for watcher, call in begun[::-1]:
            watcher.abandon(call)
        raise
    for watcher, call in begun[::-1]:
        watcher.end(call, result)
    return result


def _arguments(original: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
    code = original.__code__
    if code.co_argcount == code.co_kwonlyargcount == 0 or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return Arguments(args, kwargs)
    values = dict(zip(code.co_varnames, args, strict=False)) | kwargs
    try:
        caller = sys._getframe(2).f_back
        return as_passed(original, values, call_at(caller)) or without_defaults(original, values)
    except Exception:  # in bytecode that dis cannot read, say
        return Arguments(args, kwargs)


def _exchange(function: FunctionType, key: int) -> None:
    original = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    original.__kwdefaults__ = function.__kwdefaults__
    known = _originals.get(key)
    if known is None or known.__code__ is not original.__code__:
        _trampolines[key] = _trampoline(function.__code__, key)
    _originals[key] = original
    function.__code__ = _trampolines[key]


def _trampoline(original: CodeType, key: int) -> CodeType:
    """Code with the parameters and the number of free variables of ``original``."""
    names = original.co_varnames
    count, keyword_only = original.co_argcount, original.co_kwonlyargcount
    fixed = names[:count]
    named = names[count : count + keyword_only]
    rest = iter(names[count + keyword_only :])
    variable = next(rest) if original.co_flags & inspect.CO_VARARGS else None
    keywords = next(rest) if original.co_flags & inspect.CO_VARKEYWORDS else None
    parameters = list(fixed)
    if original.co_posonlyargcount:
        parameters.insert(original.co_posonlyargcount, "/")
    if variable is not None or named:
        parameters.append(f"*{variable or ''}")
    parameters += named
    parameters += [f"**{keywords}"] if keywords else []
    args = "".join(f"{name}, " for name in [*fixed, *([f"*{variable}"] if variable else [])])
    kwargs = ", ".join([*(f"{name!r}: {name}" for name in named), *([f"**{keywords}"] if keywords else [])])
    source = (
        f"def trampoline({', '.join(parameters)}):\n"
        f"    from {__name__} import through as _probe_patch_through\n"
        f"    return _probe_patch_through({key}, ({args}), {{{kwargs}}})\n"
    )
    module = compile(source, __file__, "exec", dont_inherit=True)
    (made,) = (constant for constant in module.co_consts if isinstance(constant, CodeType))
    return made.replace(co_name=original.co_name, co_freevars=original.co_freevars)
