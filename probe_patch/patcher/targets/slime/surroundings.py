"""What may stand around a phase's statement, so that start, statement and stop always run in this order.

The stop is a line of its own behind the statement. It is missed where the statement can be left another way: those
shapes are refused, since the phase would go on recording what follows it.
"""

import itertools
from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from probe_patch.patcher.syntax import Source
from probe_patch.patcher.tree import OWN_SCOPE, children, walk_own_scope

_JUMPS = (cst.Break, cst.Continue, cst.Return, cst.Raise)


def whole_line(source: Source, rollout: cst.FunctionDef, call: cst.Call) -> cst.SimpleStatementLine | None:
    """The statement that holds ``call`` and has its lines to itself; None where lines cannot be put around it."""
    for node in _around(source, rollout, call):
        if isinstance(node, cst.SimpleStatementLine):
            return node
        if isinstance(node, cst.BaseStatement | cst.SimpleStatementSuite):
            return None
    return None


def missed_stop(source: Source, rollout: cst.FunctionDef, ran: cst.Call | cst.With) -> str | None:
    """Why the line behind the statement of ``ran`` may not run when that is over; None where it always does."""
    around = list(_around(source, rollout, ran))
    if any(isinstance(node, OWN_SCOPE) for node in around):
        return "stands in a nested function or comprehension, which runs at another time"
    inner: cst.CSTNode = ran
    for node in around:
        if isinstance(node, cst.Try | cst.TryStar) and node.handlers and node.body is inner:
            return "stands in a try whose except may swallow its failure; put the try into what it calls"
        if isinstance(node, cst.Try | cst.TryStar) and node.finalbody is not None and _leaves(node.finalbody):
            return "stands in a try whose finally jumps away, and so may swallow its failure"
        if isinstance(node, cst.SimpleStatementLine) and any(isinstance(part, _JUMPS) for part in node.body):
            return "shares its line with a jump, which its stop would miss"
        if isinstance(node, cst.With) and any(_swallows(item) for item in node.items):
            return "stands in a with that may swallow its failure; put that into what it calls"
        inner = node
    if isinstance(ran, cst.With) and _jumps_out(ran.body):
        return "is left by a break or continue, which its stop would miss"
    return None


def _leaves(node: cst.CSTNode) -> bool:
    return _jumps_out(node) or any(isinstance(inner, cst.Return) for inner in walk_own_scope(node))


def _around(source: Source, rollout: cst.FunctionDef, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """What ``node`` stands in, from the inside out, up to the body of ``rollout``."""
    return itertools.takewhile(lambda outer: outer is not rollout, source.around(node))


def _swallows(item: cst.WithItem) -> bool:
    return m.matches(item.item, m.Call(func=m.Name("suppress") | m.Attribute(attr=m.Name("suppress"))))


def _jumps_out(node: cst.CSTNode) -> bool:
    """Whether ``node`` has a break or continue for a loop outside of it."""
    if isinstance(node, cst.Break | cst.Continue):
        return True
    if isinstance(node, (*OWN_SCOPE, cst.For, cst.While)):
        # The else of an inner loop belongs to the outer one.
        orelse = getattr(node, "orelse", None)
        return orelse is not None and _jumps_out(orelse)
    return any(_jumps_out(child) for child in children(node))
