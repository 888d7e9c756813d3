"""Reading a patched actor back, without the code that patched it.

``ast`` finds the blocks by what they do, and every one must stand where it works: an independent second opinion on the
LibCST anchors and on the line arithmetic, taken before a byte is written.
"""

import ast
from collections.abc import Iterator

from probe_patch.dump_format import Phase
from probe_patch.patcher.request import Request
from probe_patch.patcher.targets.readback import (
    Method,
    bug,
    is_innermost_decorator,
    methods_of,
    top_level_functions,
)


def read_back(tree: ast.Module, request: Request, where: str) -> None:
    """Check that the blocks of ``request`` stand where they must.

    Raises:
        Refused: one does not; this is a bug of probe-patch, and the sentence says so.
    """
    if top_level_functions(tree, "_probe_patch_rollout") != 1:
        raise bug(where, "the prelude is not at the top of the module")
    methods = [method for node in tree.body if isinstance(node, ast.ClassDef) for method in methods_of(node)]
    if sum(method.name == "init" and _sets_debugger_first(method) for method in methods) != 1:
        raise bug(where, "init does not begin with the debugger")
    decorated = [method for method in methods if is_innermost_decorator("_probe_patch_rollout", method)]
    if len(decorated) != 1:
        raise bug(where, "the decorator of the rollout is not on exactly one method")
    for phase in ("ref", "old", "actor"):
        bracketed = sum(_brackets(body, phase) for body in _bodies(decorated[0]))
        if bracketed != (phase in request.phases):
            raise bug(where, f"phase {phase} is bracketed {bracketed} times")


def _sets_debugger_first(method: Method) -> bool:
    statements = method.body[1:] if ast.get_docstring(method, clean=False) is not None else method.body
    return bool(statements) and _guarded(statements[0]) == "self.debugger = _probe_patch.debugger(role)"


def _bodies(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for inner in ast.walk(node):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(inner, field, None)
            if isinstance(block, list):
                yield block


def _brackets(body: list[ast.stmt], phase: Phase) -> int:
    """How often ``start, the phase's one line, stop`` stands in ``body``; -1 where something else is bracketed."""
    starts = [number for number, statement in enumerate(body) if _is_call(statement, "start", phase)]
    for start in starts:
        stop = next((number for number in range(start, len(body)) if _is_call(body[number], "stop", phase)), start)
        inside = body[start + 1 : stop]
        one_line = len(inside) == 1 or not any(hasattr(statement, "body") for statement in inside)
        if not one_line or sum(_runs(statement, phase) for statement in inside) != 1:
            return -1
    return len(starts)


def _is_call(statement: ast.stmt, verb: str, phase: Phase) -> bool:
    return _guarded(statement) == f"_probe_patch.{verb}(self, {phase!r})"


def _guarded(statement: ast.stmt) -> str | None:
    """What runs only with the dump on."""
    match statement:
        case ast.If(test=ast.Name(id="_probe_patch"), body=[only], orelse=[]):
            return ast.unparse(only)
        case _:
            return None


def _runs(statement: ast.stmt, phase: Phase) -> bool:
    text = ast.unparse(statement)
    if phase == "actor":
        return isinstance(statement, ast.With | ast.AsyncWith) and "actor_train" in text and "train(" in text
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call) and _is_log_prob_call(node)]
    return len(calls) == 1 and _has_ref_prefix(calls[0]) == (phase == "ref")


def _is_log_prob_call(call: ast.Call) -> bool:
    return ast.unparse(call.func) == "self.compute_log_prob"


def _has_ref_prefix(call: ast.Call) -> bool:
    named = [keyword.value for keyword in call.keywords if keyword.arg == "store_prefix"]
    values = named or call.args
    return any(isinstance(value, ast.Constant) and value.value == "ref_" for value in values)
