"""The first block of every patched file: the gate that reads ``DUMP_ON``, and what the other blocks call."""

from typing import Final

import libcst as cst
import libcst.matchers as m

from probe_patch.patcher.insertion import Insertion
from probe_patch.patcher.markers import PRELUDE
from probe_patch.patcher.request import Request
from probe_patch.patcher.syntax import Source
from probe_patch.patcher.template import Identifier, render

_RANK: Final = 1

_FUTURE = m.SimpleStatementLine(
    body=[m.ZeroOrMore(), m.ImportFrom(module=m.Name("__future__")), m.ZeroOrMore()],
)


def prelude(source: Source, request: Request, runtime: Identifier, code: str) -> Insertion:
    """The gate and ``code``, before the first statement behind the docstring and the ``__future__`` imports.

    Args:
        source: the file.
        request: goes into the opening marker.
        runtime: the module of ``probe_patch.runtime`` whose ``Probe`` the gate imports as ``_ProbePatch``.
        code: what follows the gate.
    """
    gate = render("gate.py", {"RUNTIME": runtime})
    return Insertion(_line(source), _RANK, PRELUDE, f"{gate}\n\n{code}", b"", request.detail())


def is_docstring(statement: cst.CSTNode) -> bool:
    """Whether Python takes the first statement of a body for its docstring: no bytes, no f-string."""
    if not isinstance(statement, cst.SimpleStatementLine) or not isinstance(statement.body[0], cst.Expr):
        return False
    value = statement.body[0].value
    return isinstance(value, cst.SimpleString | cst.ConcatenatedString) and isinstance(value.evaluated_value, str)


def _line(source: Source) -> int:
    body = source.module.body
    leading = 1 if body and is_docstring(body[0]) else 0
    for number, statement in enumerate(body):
        if m.matches(statement, _FUTURE):
            leading = number + 1
    return source.first_line(body[leading])
