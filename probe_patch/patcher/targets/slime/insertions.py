"""The blocks that go into slime's actor: at most nine, whatever the version."""

from collections.abc import Iterator
from typing import Final

import libcst as cst
import libcst.matchers as m

from probe_patch.patcher.insertion import Insertion
from probe_patch.patcher.markers import PRELUDE
from probe_patch.patcher.request import Request
from probe_patch.patcher.syntax import Source
from probe_patch.patcher.targets.slime.anchors import AnchorMissing, Anchors
from probe_patch.patcher.template import render

# A phase ends before the next one begins, where both stand between the same two lines.
_STOP: Final = 0
_OTHER: Final = 1

_FUTURE = m.SimpleStatementLine(
    body=[m.ZeroOrMore(), m.ImportFrom(module=m.Name("__future__")), m.ZeroOrMore()],
)


def _is_docstring(statement: cst.CSTNode) -> bool:
    """Whether Python takes the first statement of a body for its docstring: no bytes, no f-string."""
    if not isinstance(statement, cst.SimpleStatementLine) or not isinstance(statement.body[0], cst.Expr):
        return False
    value = statement.body[0].value
    return isinstance(value, cst.SimpleString | cst.ConcatenatedString) and isinstance(value.evaluated_value, str)


def slime_insertions(source: Source, anchors: Anchors, request: Request) -> tuple[Insertion, ...]:
    """Everything ``apply`` adds to this file."""
    return (_prelude(source, request), _init(source, anchors), _rollout(source, anchors), *_phases(source, anchors))


def _prelude(source: Source, request: Request) -> Insertion:
    values = {"PHASES": request.phases, "CONFIG": request.config}
    code = render("slime/prelude.py", values)
    return Insertion(_line_for_prelude(source), _OTHER, PRELUDE, code, b"", request.detail())


def _line_for_prelude(source: Source) -> int:
    """Before the first statement behind the docstring and the ``__future__`` imports."""
    body = source.module.body
    leading = 1 if body and _is_docstring(body[0]) else 0
    for number, statement in enumerate(body):
        if m.matches(statement, _FUTURE):
            leading = number + 1
    return source.first_line(body[leading])


def _init(source: Source, anchors: Anchors) -> Insertion:
    statements = anchors.init.body.body
    has_docstring = _is_docstring(statements[0])
    if has_docstring and len(cst.ensure_type(statements[0], cst.SimpleStatementLine).body) > 1:
        line = source.first_line(statements[0]) + 1
        raise AnchorMissing(f"{source.where}, line {line}: code shares the line of init's docstring; give it its own")
    code = render("slime/init.py", {})
    if has_docstring and len(statements) == 1:
        return Insertion(source.line_after(statements[0]), _OTHER, "init", code, source.indent(statements[0]))
    first = statements[1 if has_docstring else 0]
    return Insertion(source.first_line(first), _OTHER, "init", code, source.indent(first))


def _rollout(source: Source, anchors: Anchors) -> Insertion:
    line = source.definition_line(anchors.rollout)
    return Insertion(line, _OTHER, "rollout", render("slime/rollout.py", {}), source.indent(anchors.rollout))


def _phases(source: Source, anchors: Anchors) -> Iterator[Insertion]:
    for phase, statement in anchors.phases.items():
        indent = source.indent(statement)
        start, stop = (render(f"slime/{verb}.py", {"PHASE": phase}) for verb in ("start", "stop"))
        yield Insertion(source.first_line(statement), _OTHER, f"{phase}-start", start, indent)
        yield Insertion(source.line_after(statement), _STOP, f"{phase}-stop", stop, indent)
