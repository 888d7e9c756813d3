"""The three places in SGLang's model_runner.py that the patch hangs on. Each must match exactly once.

=========  =====================================================================================
class      top level, named ``ModelRunner``
init       its method ``__init__``: no version returns early from it, and none calls forward in it
forward    its method ``forward``: takes the batch first, whatever its name; bodies differ, and do not matter
=========  =====================================================================================
"""

from dataclasses import dataclass

import libcst as cst
import libcst.matchers as m

from probe_patch.patcher.syntax import Source
from probe_patch.patcher.targets.anchoring import (
    exactly_one,
    plain_method,
    positional_parameters,
    refused_at,
    top_level_classes,
)
from probe_patch.patcher.tree import walk_own_scope


@dataclass(frozen=True)
class Anchors:
    """The two methods to decorate."""

    init: cst.FunctionDef
    forward: cst.FunctionDef


def find_anchors(source: Source) -> Anchors:
    """Find both methods.

    Raises:
        AnchorMissing: one matched no place or several; the sentence names it and shows the nearest candidates.
    """
    classes = top_level_classes(source)
    runners = [node for node in classes if node.name.value == "ModelRunner"]
    runner = exactly_one(source, runners, "a top-level class ModelRunner", classes)
    init, forward = (_method(source, runner, name) for name in ("__init__", "forward"))
    if len(positional_parameters(forward)) == 1 and not isinstance(forward.params.star_arg, cst.Param):
        raise refused_at(source, forward, "forward takes no batch, so what it runs cannot be told")
    return Anchors(init, forward)


def _method(source: Source, runner: cst.ClassDef, name: str) -> cst.FunctionDef:
    method = plain_method(source, runner, name)
    if method.asynchronous is not None:
        raise refused_at(source, method, f"{name} is async: its body runs after the call that should be watched")
    _require_no_other(source, runner, name)
    return method


def _require_no_other(source: Source, runner: cst.ClassDef, name: str) -> None:
    """The method must be what the class has under its name in the end."""
    for node in walk_own_scope(runner.body):
        if _binds(node, name):
            raise refused_at(source, node, f"{name} is set again here, so what is decorated may not be what runs")
        if not isinstance(node, cst.IndentedBlock) or node is runner.body:
            continue
        for inner in node.body:
            if isinstance(inner, cst.FunctionDef) and inner.name.value == name:
                raise refused_at(source, inner, f"{name} is defined again here, and only a run could tell which counts")


def _binds(node: cst.CSTNode, name: str) -> bool:
    return m.matches(
        node,
        m.AssignTarget(target=m.Name(name)) | m.AnnAssign(target=m.Name(name), value=m.DoNotCare()),
    )
