"""Which kind of file this is, by what it defines, and by its name where it cannot be read."""

import ast
from collections.abc import Iterator
from pathlib import PurePath

from probe_patch.errors import Refused
from probe_patch.patcher.targets.kind import Kind
from probe_patch.patcher.targets.sglang.kind import SGLANG
from probe_patch.patcher.targets.slime.kind import SLIME

_NAMES = ("actor.py", "ppo_actor.py", "model_runner.py")
_CLASSES = ("TrainRayActor", "RayTrainGroup", "ModelRunner")


def refuse_strangers(tree: ast.Module | None, where: str) -> None:
    """Refuse a file that is of no kind: neither by its name nor by what it defines.

    Args:
        tree: as for ``kind_of``; what does not parse may be of any kind.
        where: its name.

    Raises:
        Refused: with what is patched.
    """
    if tree is None or PurePath(where).name in _NAMES or any(name.endswith(_CLASSES) for name in _class_names(tree)):
        return
    raise Refused(
        f"{where}: is neither slime's actor nor SGLang's model runner; what is patched is actor.py of slime or miles "
        "(backends/megatron_utils) and model_runner.py of SGLang (srt/model_executor), so name one of these"
    )


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
