"""What has to be known of an actor's source before it can be run: names, parameters, how many values it unpacks."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType

FILE_NAME = "actor.py"


@dataclass(frozen=True)
class ActorSource:
    """One version of the actor's file.

    Attributes:
        code: the file, compiled.
        class_name: the top-level class with a method ``init``.
        rollout_method: the method that holds the phases: ``train_actor``, or ``train`` before it was split out.
        parameters: names of the parameters of ``init`` and ``train``, without ``self``.
        unpacked: for each function whose result is assigned to several targets, how many; the helpers' results
            changed their length through slime's history.
    """

    code: CodeType
    class_name: str
    rollout_method: str
    parameters: dict[str, tuple[str, ...]]
    unpacked: dict[str, int]


@lru_cache(maxsize=4)
def read_actor(source: bytes) -> ActorSource:
    """Read and compile one version of the file.

    Raises:
        SyntaxError: the source is not Python.
        ValueError: it has no top-level class with a method ``init``.
    """
    tree = ast.parse(source, FILE_NAME)
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef) and "init" in _methods(statement.body):
            methods = _methods(statement.body)
            return ActorSource(
                code=compile(tree, FILE_NAME, "exec"),
                class_name=statement.name,
                rollout_method="train_actor" if "train_actor" in methods else "train",
                parameters={name: _parameters(methods[name]) for name in ("init", "train")},
                unpacked=_unpacked(tree),
            )
    raise ValueError("this source has no top-level class with a method init: it is no actor")


def _methods(body: Sequence[ast.stmt]) -> dict[str, ast.FunctionDef]:
    return {statement.name: statement for statement in body if isinstance(statement, ast.FunctionDef)}


def _parameters(function: ast.FunctionDef) -> tuple[str, ...]:
    return tuple(parameter.arg for parameter in function.args.args[1:])


def _unpacked(tree: ast.Module) -> dict[str, int]:
    lengths = {}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Call(func=ast.Name(id=function))):
                lengths[function] = len(targets)
    return lengths
