"""How a Python function was called: its caller's bytecode tells what was passed by position and what by name.

Python tells a function neither, nor which of its arguments are defaults that were left out.
"""

from __future__ import annotations

import dis
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from probe_patch.runtime.capture.functions.by_code import ByCode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import CodeType, FrameType

_POSITIONAL_ONLY_CALLS: Final = ("CALL_FUNCTION", "CALL_METHOD")
_HAS_KW_NAMES: Final = "KW_NAMES" in dis.opmap
_HOLDS_NAMES: Final = "KW_NAMES" if _HAS_KW_NAMES else "LOAD_CONST"
_VARIABLE: Final = 0x04 | 0x08
"""Of a code's flags: it takes ``*args``, it takes ``**kwargs``."""


class CallSite(NamedTuple):
    """One call in the bytecode.

    Attributes:
        positional: how many arguments stand in it by position; of a method, the object is not among them.
        keywords: the names of those that follow.
    """

    positional: int
    keywords: tuple[str, ...]


class Arguments(NamedTuple):
    """What a function was given."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class Reading:
    """One way in which a call may have passed the parameters of a Python function.

    Args:
        positional: the parameters that were passed by position.
        keywords: those that were passed by name.
        left_out: all others, with their defaults.
    """

    __slots__ = ("_keywords", "_left_out", "_positional")

    def __init__(
        self, positional: tuple[str, ...], keywords: tuple[str, ...], left_out: tuple[tuple[str, Any], ...]
    ) -> None:
        self._positional = positional
        self._keywords = keywords
        self._left_out = left_out

    def of(self, values: Mapping[str, Any]) -> Arguments | None:
        """What was passed where the parameters have these values; None where they say that it was not passed so."""
        for name, default in self._left_out:
            if values[name] is not default:
                return None
        return Arguments(
            tuple([values[name] for name in self._positional]), {name: values[name] for name in self._keywords}
        )


def call_at(frame: FrameType | None) -> CallSite | None:
    """The call that a frame is in; None where that is no plain call, as with ``f(*args)``."""
    return None if frame is None else _calls.at(frame)


def calls_of(code: CodeType) -> dict[int, CallSite]:
    """The plain calls of a code by the offsets of their instructions.

    While a Python function runs, its caller may already stand at the end of the space that the instruction has behind
    it, so that a call has several offsets.
    """
    steps = [step for step in dis.get_instructions(code) if step.opname != "CACHE"]
    ends = [*(step.offset for step in steps[1:]), len(code.co_code)]
    found: dict[int, CallSite] = {}
    names: tuple[str, ...] = ()
    for step, end in zip(steps, ends, strict=True):
        if step.opname in ("PRECALL", "EXTENDED_ARG"):
            continue
        site = _call_site(step, names)
        if site is not None:
            found |= dict.fromkeys(range(step.offset, end, 2), site)
        # Not every dis shows what KW_NAMES holds.
        held = code.co_consts[step.arg or 0] if step.opname == _HOLDS_NAMES else None
        names = held if isinstance(held, tuple) else ()
    return found


def _call_site(step: dis.Instruction, names: tuple[str, ...]) -> CallSite | None:
    """The call that an instruction makes; ``names`` is what the one before it holds, if it holds names."""
    count = step.arg or 0
    # Up to Python 3.10 and from 3.13 on, calls with keywords have opcodes of their own.
    if step.opname in ("CALL_KW", "CALL_FUNCTION_KW"):
        return CallSite(count - len(names), names)
    if step.opname == "CALL":
        named = names if _HAS_KW_NAMES else ()
        return CallSite(count - len(named), named)
    return CallSite(count, ()) if step.opname in _POSITIONAL_ONLY_CALLS else None


_calls: Final = ByCode(calls_of)


def readings(function: Callable[..., Any], site: CallSite) -> tuple[Reading, ...]:
    """The ways in which a call may have passed its arguments, the likeliest first.

    There is none where C code (``functools.partial``, ``map``) must stand between the caller and the function, as
    parameters without a default are missing in the call.

    Args:
        function: has no ``*args`` or ``**kwargs``, or nothing can be told.
        site: the call.
    """
    code: CodeType = function.__code__
    if code.co_flags & _VARIABLE:
        return ()
    defaults = _defaults(function)
    names = code.co_varnames[: code.co_argcount]
    all_names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    found = []
    # The object of ``x.method()`` stands in no argument's place.
    for positional in (site.positional, site.positional + 1) if names[:1] == ("self",) else (site.positional,):
        given = (*names[:positional], *site.keywords)
        left_out = [name for name in all_names if name not in given]
        is_possible = positional <= len(names) and len(set(given)) == len(given) and set(given) <= set(all_names)
        if is_possible and all(name in defaults for name in left_out):
            found.append(Reading(names[:positional], site.keywords, tuple((name, defaults[name]) for name in left_out)))
    return tuple(found)


def as_passed(function: Callable[..., Any], values: Mapping[str, Any], site: CallSite | None) -> Arguments | None:
    """The arguments of a Python function as its caller passed them; None where that cannot be told.

    Args:
        function: has no ``*args`` or ``**kwargs``, or nothing can be told.
        values: the values of all its parameters.
        site: the call.
    """
    ways = () if site is None else readings(function, site)
    return next((passed for way in ways if (passed := way.of(values)) is not None), None)


def without_defaults(function: Callable[..., Any], values: Mapping[str, Any]) -> Arguments:
    """The arguments of a Python function as they may have been passed: by position, and without what is a default."""
    code: CodeType = function.__code__
    defaults = _defaults(function)
    names = code.co_varnames[: code.co_argcount]
    count = next((place for place, name in enumerate(names) if _is_default(values, name, defaults)), len(names))
    behind = code.co_varnames[count : code.co_argcount + code.co_kwonlyargcount]
    return Arguments(
        tuple(values[name] for name in names[:count]),
        {name: values[name] for name in behind if not _is_default(values, name, defaults)},
    )


def _is_default(values: Mapping[str, Any], name: str, defaults: Mapping[str, Any]) -> bool:
    return name in defaults and values[name] is defaults[name]


def _defaults(function: Callable[..., Any]) -> dict[str, Any]:
    code: CodeType = function.__code__
    by_position: tuple[Any, ...] = function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    named: dict[str, Any] = function.__kwdefaults__ or {}
    return dict(zip(names[len(names) - len(by_position) :], by_position, strict=True)) | named
