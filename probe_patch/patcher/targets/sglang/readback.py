"""Reading a patched model_runner.py back, without the code that patched it."""

import ast

from probe_patch.patcher.request import Request
from probe_patch.patcher.targets.readback import bug, is_innermost_decorator, methods_of, top_level_functions

_DECORATED = {"_probe_patch_init": "__init__", "_probe_patch_forward": "forward"}


def read_back(tree: ast.Module, _request: Request, where: str) -> None:
    """Check that each decorator stands where it must, and nowhere else.

    Raises:
        Refused: one does not; this is a bug of probe-patch, and the sentence says so.
    """
    runners = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "ModelRunner"]
    for decorator, name in _DECORATED.items():
        if top_level_functions(tree, decorator) != 1:
            raise bug(where, "the prelude is not at the top of the module")
        decorated = [
            method
            for runner in runners
            for method in methods_of(runner)
            if method.name == name and is_innermost_decorator(decorator, method)
        ]
        used = sum(
            isinstance(node, ast.Name) and node.id == decorator and isinstance(node.ctx, ast.Load)
            for node in ast.walk(tree)
        )
        if (len(decorated), used) != (1, 1):
            raise bug(where, f"{name} is not decorated exactly once")
