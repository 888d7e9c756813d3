"""The arguments of torch's functions that are written in Python, as their callers passed them.

Such a function hands its call on to the mode with all but its tensors by keyword, defaults included. Its own frame,
just above, still has its parameters, and the bytecode of its caller tells which of them were passed, and how.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final

from torch.overrides import handle_torch_function

from probe_patch.runtime.capture.functions.call_sites import Arguments, CallSite, Reading, as_passed, call_at, readings

if TYPE_CHECKING:
    from types import CodeType, FrameType, FunctionType

_HANDS_ON: Final[CodeType] = handle_torch_function.__code__
_DEPTH: Final = 4
"""How far above a function's own frame may be: ``max_pool2d`` chooses between two others, which hand the call on."""


class PassedArguments:
    """What callers passed to one function."""

    def __init__(self, function: FunctionType) -> None:
        self._function = function
        self._code: CodeType | None = None
        self._names: tuple[str, ...] = ()
        self._readings: dict[CallSite, tuple[Reading, ...]] = {}

    def of(self, frame: FrameType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        """What was passed where the mode got the call from ``frame``, with these arguments.

        Where it cannot be told, as when the function was called with ``f(*args)``, these are it.
        """
        if frame.f_code is not _HANDS_ON:
            return Arguments(args, kwargs)
        own = _frame_of(self._function.__code__, frame.f_back)
        if own is None:
            return Arguments(args, kwargs)
        site = call_at(own.f_back)
        passed = self._read(site, args, kwargs)
        if passed is None:
            passed = self._looked_up(own, site)
            if passed is not None and not _holds(passed, args):
                passed = None
        return Arguments(args, kwargs) if passed is None else passed

    def _read(self, site: CallSite | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments | None:
        """What was passed, if all parameters were handed on, as is usual."""
        if site is None:
            return None
        if self._function.__code__ is not self._code:
            self._begin_anew()
        ways = self._readings.get(site)
        if ways is None:
            ways = self._readings[site] = readings(self._function, site)
        if not ways or len(args) + len(kwargs) != len(self._names):
            return None
        values = dict(zip(self._names, args, strict=False))
        values.update(kwargs)
        if len(values) != len(self._names):
            return None
        for way in ways:
            passed = way.of(values)
            if passed is not None:
                return passed
        return None

    def _begin_anew(self) -> None:
        """For the code that the function has now. Defaults may change too; then the readings fit no more values."""
        code = self._code = self._function.__code__
        self._names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        self._readings = {}

    def _looked_up(self, own: FrameType, site: CallSite | None) -> Arguments | None:
        """What was passed, by what the function's parameters still are."""
        code = self._function.__code__
        if not code.co_flags & inspect.CO_VARARGS:
            return as_passed(self._function, own.f_locals, site)
        if code.co_argcount or code.co_kwonlyargcount:
            return None
        values = own.f_locals
        by_name = values[code.co_varnames[1]] if code.co_flags & inspect.CO_VARKEYWORDS else {}
        return Arguments(values[code.co_varnames[0]], dict(by_name))


def _frame_of(code: CodeType, frame: FrameType | None) -> FrameType | None:
    for _ in range(_DEPTH):
        if frame is None or frame.f_code is code:
            return frame
        frame = frame.f_back
    return None


def _holds(passed: Arguments, values: tuple[Any, ...]) -> bool:
    """Whether these values are among what was passed: a function may have assigned to its parameters."""
    among = {id(value) for value in (*passed.args, *passed.kwargs.values())}
    return all(id(value) in among for value in values)
