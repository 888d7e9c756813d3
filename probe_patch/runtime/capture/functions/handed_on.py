"""The arguments of torch's functions that are written in Python, as their callers passed them.

Such a function hands its call on to the mode with all but its tensors by keyword, defaults included. Its own frame,
just above, still has its parameters, and the bytecode of its caller tells which of them were passed, and how.
"""

from __future__ import annotations

import inspect
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

from torch.overrides import handle_torch_function

from probe_patch.runtime.capture.functions.call_sites import Arguments, CallSites, as_passed

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType

_HANDS_ON: Final[CodeType] = handle_torch_function.__code__
_DEPTH: Final = 4
"""How far above a function's own frame may be: ``max_pool2d`` chooses between two others, which hand the call on."""


class PassedArguments:
    """What callers passed, by call site."""

    def __init__(self) -> None:
        self._sites = CallSites()

    def of(
        self, function: Callable[..., Any], frame: FrameType, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Arguments:
        """What was passed to a function whose call the mode got, from ``frame``, with these arguments.

        Where it cannot be told, as when the function was called with ``f(*args)``, these are it.
        """
        handed_on = Arguments(args, kwargs)
        if frame.f_code is not _HANDS_ON or not isinstance(function, FunctionType):
            return handed_on
        own = _frame_of(function.__code__, frame.f_back)
        passed = None if own is None else self._passed(function, own)
        return passed if passed is not None and _holds(passed, args) else handed_on

    def _passed(self, function: FunctionType, own: FrameType) -> Arguments | None:
        code = function.__code__
        if not code.co_flags & inspect.CO_VARARGS:
            return as_passed(function, own.f_locals, self._sites.at(own.f_back))
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
