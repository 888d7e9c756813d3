"""What reading a patched file back has in common, whatever the file: ``ast`` alone, no code that did the patching."""

import ast

from probe_patch.errors import Refused

Method = ast.FunctionDef | ast.AsyncFunctionDef


def top_level_functions(tree: ast.Module, name: str) -> int:
    """How often the module itself defines ``name``."""
    return sum(isinstance(node, ast.FunctionDef) and node.name == name for node in tree.body)


def methods_of(node: ast.ClassDef) -> list[Method]:
    return [member for member in node.body if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef)]


def is_innermost_decorator(name: str, method: Method) -> bool:
    return bool(method.decorator_list) and ast.unparse(method.decorator_list[-1]) == name


def bug(where: str, what: str) -> Refused:
    """The error for a patch that does not stand where it must."""
    return Refused(
        f"{where}: {what} after patching, so nothing is written; this is a bug of probe-patch, please report it"
    )
