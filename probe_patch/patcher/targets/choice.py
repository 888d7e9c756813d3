"""Which kind of file this is, by what it defines, and by its name where it cannot be read."""

import ast
from collections.abc import Iterator
from pathlib import PurePath

from probe_patch.patcher.targets.kind import Kind
from probe_patch.patcher.targets.sglang.kind import SGLANG
from probe_patch.patcher.targets.slime.kind import SLIME


def kind_of(tree: ast.Module | None, where: str) -> Kind:
    """SGLang's where there is a ``ModelRunner`` or the name says so; slime's for every other file.

    Args:
        tree: what Python makes of the file; None where it does not parse.
        where: its name.
    """
    names = tuple(_class_names(tree)) if tree is not None else ()
    if any(name.endswith("TrainRayActor") for name in names):
        return SLIME
    if any(name.endswith("ModelRunner") for name in names) or PurePath(where).name == "model_runner.py":
        return SGLANG
    return SLIME


def _class_names(tree: ast.Module) -> Iterator[str]:
    """Top-level classes and what they derive from by name."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name
            yield from (base.id for base in node.bases if isinstance(base, ast.Name))
