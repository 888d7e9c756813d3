"""Files that look like slime's actor and are not ours to patch, each with the reason its user needs."""

import ast
from collections.abc import Iterator
from pathlib import PurePath

from probe_patch.errors import Refused
from probe_patch.patcher.targets.refusals import refuse_left_overs, refuse_vendor_edits, vendor_lines


def refuse_what_is_not_ours(tree: ast.Module, where: str) -> None:
    """Refuse a file by what it is, before any anchor is looked for.

    Raises:
        Refused: the actor from before 2025-07-18, the FSDP actor, an abstract skeleton, or a file that already carries
            the vendor's hand-made edits or what is left of ours.
    """
    refuse_left_overs(tree, where)
    refuse_vendor_edits(_vendor_lines(tree), where)
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


def _vendor_lines(tree: ast.Module) -> Iterator[int]:
    """What msProbe's page has its readers add to the actor."""
    yield from vendor_lines(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr="debugger"):
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
