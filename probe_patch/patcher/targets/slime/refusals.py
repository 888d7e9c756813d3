"""Files that look like slime's actor and are not ours to patch, each with the reason its user needs."""

import ast
from collections.abc import Iterator
from pathlib import PurePath

from probe_patch.errors import Refused

_VENDOR_NAMES = ("msprobe", "PrecisionDebugger")


def refuse_what_is_not_ours(tree: ast.Module, where: str) -> None:
    """Refuse a file by what it is, before any anchor is looked for.

    Raises:
        Refused: the actor from before 2025-07-18, the FSDP actor, an abstract skeleton, or a file that already carries
            the vendor's hand-made edits or what is left of ours.
    """
    _refuse_left_overs(tree, where)
    _refuse_vendor_edits(tree, where)
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    if PurePath(where).name == "ppo_actor.py" or any(node.name == "RayTrainGroup" for node in classes):
        raise Refused(
            f"{where}: this is slime's actor from before 2025-07-18 (slime/ray/ppo_actor.py), which probe-patch does "
            "not know; use slime v0.1.0 or later"
        )
    if any(node.name.startswith("FSDP") and node.name.endswith("TrainRayActor") for node in classes):
        raise Refused(
            f"{where}: this is slime's FSDP actor; probe-patch patches the Megatron one "
            "(slime/backends/megatron_utils/actor.py), so run with --train-backend megatron"
        )
    for node in classes:
        if node.name.endswith("TrainRayActor") and (skeleton := _abstract_method(node)):
            raise Refused(
                f"{where}, line {skeleton.lineno}: {node.name}.{skeleton.name} is an abstract skeleton, so there is no "
                "training in this file to dump; name the file of the class that implements it"
            )


def _refuse_left_overs(tree: ast.Module, where: str) -> None:
    lines = {
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id.startswith(("_probe_patch", "_ProbePatch"))
    }
    if lines:
        raise Refused(
            f"{where}, {_line_list(lines)}: left over from a probe-patch block whose markers are gone; delete by hand"
        )


def _refuse_vendor_edits(tree: ast.Module, where: str) -> None:
    lines = set(_vendor_lines(tree))
    if lines:
        raise Refused(
            f"{where}, {_line_list(lines)}: already carries msProbe's hand-made edits (debugger, import or DUMP_ON); "
            "both together would dump twice, so take those lines out first"
        )


def _vendor_lines(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names) if any(name.name.split(".")[0] == "msprobe" for name in names):
                yield node.lineno
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] == "msprobe":
                yield node.lineno
            case ast.Attribute(value=ast.Name(id="self"), attr="debugger"):
                yield node.lineno
            case ast.Constant(value="DUMP_ON"):
                yield node.lineno
            case ast.Name(id=name) if name in _VENDOR_NAMES:
                yield node.lineno
            case _:
                pass


def _abstract_method(node: ast.ClassDef) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    methods = [member for member in node.body if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef)]
    named = {method.name: method for method in methods}
    rollout = named.get("train_actor") or named.get("train")
    return rollout if rollout is not None and all(_does_nothing(statement) for statement in rollout.body) else None


def _does_nothing(statement: ast.stmt) -> bool:
    match statement:
        case ast.Pass() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Raise(exc=ast.Name(id="NotImplementedError") | ast.Call(func=ast.Name(id="NotImplementedError"))):
            return True
        case _:
            return False


def _line_list(lines: set[int]) -> str:
    ordered = sorted(lines)
    shown = ", ".join(str(line) for line in ordered[:8]) + (", …" if len(ordered) > 8 else "")
    return f"line{'s' if len(ordered) > 1 else ''} {shown}"
