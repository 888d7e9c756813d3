"""How a Python function was called: its caller's bytecode tells what was passed by position and what by name.

Python tells a function neither, nor which of its arguments are defaults that were left out.
"""

from __future__ import annotations

import dis
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from probe_patch.runtime.capture.functions.by_code import ByCode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import CodeType, FrameType

_POSITIONAL_ONLY_CALLS: Final = ("CALL_FUNCTION", "CALL_METHOD")
_HAS_KW_NAMES: Final = "KW_NAMES" in dis.opmap
_HOLDS_NAMES: Final = "KW_NAMES" if _HAS_KW_NAMES else "LOAD_CONST"
_VARIABLE: Final = 0x04 | 0x08
"""Of a code's flags: it takes ``*args``, it takes ``**kwargs``."""


@dataclass(frozen=True)
class CallSite:
    """One call in the bytecode.

    Attributes:
        positional: how many arguments stand in it by position; of a method, the object is not among them.
        keywords: the names of those that follow.
    """

    positional: int
    keywords: tuple[str, ...]


@dataclass(frozen=True)
class Arguments:
    """What a function was given."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class CallSites:
    """Calls by the place of their instruction."""

    def __init__(self) -> None:
        self._calls = ByCode(calls_of)

    def at(self, frame: FrameType | None) -> CallSite | None:
        """The call that a frame is in; None where that is no plain call, as with ``f(*args)``."""
        return None if frame is None else self._calls.at(frame)


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


def as_passed(function: Callable[..., Any], values: Mapping[str, Any], site: CallSite | None) -> Arguments | None:
    """The arguments of a Python function as its caller passed them; None where that cannot be told.

    Args:
        function: has no ``*args`` or ``**kwargs``, or nothing can be told.
        values: the values of all its parameters.
        site: the call.
    """
    code: CodeType = function.__code__
    if site is None or code.co_flags & _VARIABLE:
        return None
    names = code.co_varnames[: code.co_argcount]
    # The object of ``x.method()`` stands in no argument's place.
    for positional in (site.positional, site.positional + 1) if names[:1] == ("self",) else (site.positional,):
        given = (*names[:positional], *site.keywords)
        if positional <= len(names) and _accounts_for_all(function, values, given):
            return Arguments(
                tuple(values[name] for name in names[:positional]), {name: values[name] for name in site.keywords}
            )
    return None


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


def _accounts_for_all(function: Callable[..., Any], values: Mapping[str, Any], given: tuple[str, ...]) -> bool:
    """Whether these names are parameters, each once, and all other parameters have their defaults.

    It is not so where C code (``functools.partial``, ``map``) stands between the caller and the function.
    """
    code: CodeType = function.__code__
    defaults = _defaults(function)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return (
        len(set(given)) == len(given)
        and set(given) <= set(names)
        and all(name in given or _is_default(values, name, defaults) for name in names)
    )


def _is_default(values: Mapping[str, Any], name: str, defaults: Mapping[str, Any]) -> bool:
    return name in defaults and values[name] is defaults[name]


def _defaults(function: Callable[..., Any]) -> dict[str, Any]:
    code: CodeType = function.__code__
    by_position: tuple[Any, ...] = function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    named: dict[str, Any] = function.__kwdefaults__ or {}
    return dict(zip(names[len(names) - len(by_position) :], by_position, strict=True)) | named
