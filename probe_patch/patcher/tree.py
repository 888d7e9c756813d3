"""Walking a LibCST tree by its fields: an order of magnitude faster than its visitors, which copy as they go."""

from collections.abc import Iterator

import libcst as cst

OWN_SCOPE = (cst.FunctionDef, cst.Lambda, cst.ClassDef, cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp)
"""Nodes whose inside runs at another time than the statement they stand in."""

_NO_CODE = (cst.BaseParenthesizableWhitespace, cst.TrailingWhitespace, cst.EmptyLine, cst.MaybeSentinel)


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """``node`` and everything in it but white space and comments, in source order."""
    yield node
    for child in children(node):
        yield from walk(child)


def walk_own_scope(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Like ``walk``, but not into functions, classes and comprehensions."""
    yield node
    for child in children(node):
        if not isinstance(child, OWN_SCOPE):
            yield from walk_own_scope(child)


def children(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The nodes directly in ``node``, without white space and comments."""
    for name in node.__dataclass_fields__:
        value = getattr(node, name)
        for item in value if isinstance(value, list | tuple) else (value,):
            if isinstance(item, cst.CSTNode) and not isinstance(item, _NO_CODE):
                yield item
