"""Anchors that match exactly once, or refuse the file with the nearest candidates."""

from collections.abc import Sequence
from typing import TypeVar

import libcst as cst
import libcst.matchers as m

from probe_patch.errors import Refused
from probe_patch.patcher.syntax import Source
from probe_patch.patcher.tree import walk_own_scope

Node = TypeVar("Node", bound=cst.CSTNode)

_NOT_PLAIN = m.Name("staticmethod") | m.Name("classmethod") | m.Name("property")


class AnchorMissing(Refused):
    """An anchor that matched no place, or several."""


def exactly_one(source: Source, found: Sequence[Node], what: str, candidates: Sequence[cst.CSTNode]) -> Node:
    """The one node in ``found``.

    Raises:
        AnchorMissing: none or several; the sentence shows them, or else the first of ``candidates``.
    """
    if len(found) == 1:
        return found[0]
    near = [f"line {source.first_line(node) + 1}: {_one_line(source, node)}" for node in (found or candidates)[:5]]
    seen = f" Nearest: {'; '.join(near)}." if near else ""
    count = "not found" if not found else f"found {len(found)} times"
    raise AnchorMissing(f"{source.where}: {what} is {count}, and it must be there exactly once.{seen}")


def refused_at(source: Source, node: cst.CSTNode, reason: str) -> AnchorMissing:
    """The error that refuses ``source`` for what stands at ``node``."""
    return AnchorMissing(f"{source.where}, line {source.first_line(node) + 1}: {reason}")


def top_level_classes(source: Source) -> list[cst.ClassDef]:
    return [node for node in source.module.body if isinstance(node, cst.ClassDef)]


def methods(node: cst.ClassDef) -> list[cst.FunctionDef]:
    return [member for member in node.body.body if isinstance(member, cst.FunctionDef)]


def plain_method(source: Source, class_: cst.ClassDef, name: str) -> cst.FunctionDef:
    """The one method ``name`` of a class, which runs where it is called and has lines of its own.

    Raises:
        AnchorMissing: none or several, or one that is static, a property or a generator, or whose first parameter is
            not ``self``.
    """
    own = methods(class_)
    found = [method for method in own if method.name.value == name]
    method = exactly_one(source, found, f"a method {name} in class {class_.name.value}", own)
    if not isinstance(method.body, cst.IndentedBlock):
        raise refused_at(source, method, f"the body of {name} stands on its def line, so no line can be added to it")
    for decorator in method.decorators:
        if m.matches(decorator.decorator, _NOT_PLAIN):
            raise refused_at(source, method, f"{name} is a {source.text(decorator.decorator)}, not a plain method")
    if any(m.matches(node, m.Yield()) for node in walk_own_scope(method.body)):
        raise refused_at(source, method, f"{name} is a generator: its body runs after the call that should be watched")
    positional = positional_parameters(method)
    if not positional or positional[0] != "self":
        raise refused_at(source, method, f"the first parameter of {name} is not self")
    return method


def positional_parameters(method: cst.FunctionDef) -> list[str]:
    """Names of the parameters that take positional arguments, ``self`` included."""
    return [parameter.name.value for parameter in [*method.params.posonly_params, *method.params.params]]


def _one_line(source: Source, node: cst.CSTNode) -> str:
    text = " ".join(source.lines[source.first_line(node)].decode("utf-8", "replace").split())
    return text if len(text) <= 80 else text[:79] + "…"
