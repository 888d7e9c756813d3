"""Which operator a tensor method was called by: ``x + y`` and ``x.add(y)`` are the same call for torch.

msProbe names the first ``Tensor.__add__`` and the second not at all, so the name is read off the caller's bytecode.
A left operand that is a constant shows there too: ``2 * x`` is ``Tensor.__rmul__``. Nothing tells of any other that is
no tensor, so ``scale * x`` is named as ``x * scale``. Operators that C code runs for its caller do not show either: in
``sum([x, y])`` and ``operator.add(x, y)`` they carry the method's name.
"""

from __future__ import annotations

import dis
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from probe_patch.runtime.capture.functions.by_code import ByCode

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType

# What BINARY_OP's argument means, from Python 3.11 on; the same operators have opcodes of their own before.
_BINARY: Final = {
    "+": "add",
    "&": "and",
    "//": "floordiv",
    "<<": "lshift",
    "@": "matmul",
    "*": "mul",
    "%": "mod",
    "|": "or",
    "**": "pow",
    ">>": "rshift",
    "-": "sub",
    "/": "truediv",
    "^": "xor",
}
_BEFORE_3_11: Final = {
    "ADD": "add",
    "AND": "and",
    "FLOOR_DIVIDE": "floordiv",
    "LSHIFT": "lshift",
    "MATRIX_MULTIPLY": "matmul",
    "MULTIPLY": "mul",
    "MODULO": "mod",
    "OR": "or",
    "POWER": "pow",
    "RSHIFT": "rshift",
    "SUBTRACT": "sub",
    "TRUE_DIVIDE": "truediv",
    "XOR": "xor",
}
_NO_STEPS: Final = ("CACHE", "EXTENDED_ARG", "NOP")
_CONSTANTS: Final = ("LOAD_CONST", "LOAD_SMALL_INT", "LOAD_CONST_IMMORTAL")
_JUMPS: Final = frozenset({*dis.hasjrel, *dis.hasjabs})
_REACHING: Final = ("COPY", "SWAP", "DUP", "ROT", "UNPACK", "LIST_APPEND", "SET_ADD", "MAP_ADD", "YIELD", "SEND")
"""They read or move what lies deeper on the stack."""

_COMPARISONS: Final = {"<": "lt", "<=": "le", "==": "eq", "!=": "ne", ">": "gt", ">=": "ge"}


def operator_at(frame: FrameType, function: Callable[..., Any]) -> str | None:
    """The special method whose operator calls ``function`` in this frame, such as ``__add__``; None without one.

    A function mode or a tensor subclass that hands the function on is looked past.
    """
    running: FrameType | None = frame
    while running is not None:
        operator: str | None = _operators.at(running)
        if operator is not None or not _hands_on(running, function):
            return operator
        running = running.f_back
    return None


def operators_of(code: CodeType) -> dict[int, str]:
    """The special methods of a code's operators, by the offsets of their instructions."""
    steps = [step for step in dis.get_instructions(code) if step.opname not in _NO_STEPS]
    found = {}
    for place, step in enumerate(steps):
        method = _special_method(step.opname, step.argrepr, partial(_is_left_constant, steps, place))
        if method is not None:
            found[step.offset] = method
    return found


def _is_left_constant(steps: list[dis.Instruction], operator: int) -> bool:
    """Whether, of the two operands that the steps up to the operator's put on the stack, the first is a constant."""
    missing = 1
    for place in range(operator - 1, 0, -1):
        step = steps[place]
        if step.is_jump_target or step.opcode in _JUMPS or step.opname.startswith(_REACHING):
            return False
        missing -= dis.stack_effect(step.opcode, step.arg)
        if missing <= 0:
            return missing == 0 and steps[place - 1].opname in _CONSTANTS
    return False


def _hands_on(frame: FrameType, function: Callable[..., Any]) -> bool:
    code = frame.f_code
    if code.co_name != "__torch_function__" or code.co_argcount < 2:
        return False
    return frame.f_locals.get(code.co_varnames[1]) is function


def _special_method(name: str, shown: str, is_left_constant: Callable[[], bool]) -> str | None:
    """Of an instruction, given by its name and by how ``dis`` shows its argument."""
    if name == "BINARY_OP":
        in_place = "i" if shown.endswith("=") else ""
        stem = _BINARY.get(shown.removesuffix("="))
    elif name == "COMPARE_OP":
        compared = _COMPARISONS.get(shown.removeprefix("bool(").removesuffix(")"))
        return None if compared is None else f"__{compared}__"
    else:
        kind, _, which = name.partition("_")
        in_place = "i" if kind == "INPLACE" else ""
        stem = _BEFORE_3_11.get(which) if kind in ("BINARY", "INPLACE") else None
    if stem is None:
        return None
    return f"__{in_place or ('r' if is_left_constant() else '')}{stem}__"


_operators: Final = ByCode(operators_of)
