"""Files that look like SGLang's model_runner.py and are not ours to patch, each with the reason its user needs."""

import ast
from collections.abc import Iterator

from probe_patch.errors import Refused
from probe_patch.patcher.targets.refusals import refuse_left_overs, refuse_vendor_edits, vendor_lines
from probe_patch.patcher.targets.sglang.native import refuse_native
from probe_patch.patcher.targets.sglang.places import MODEL_RUNNER


def refuse_what_is_not_ours(tree: ast.Module, where: str) -> None:
    """Refuse a file by what it is, before any anchor is looked for.

    Raises:
        NativeHook: it dumps by itself.
        Refused: what is left of our blocks or the vendor's hand-made edits, the runner of another backend or of vLLM.
    """
    refuse_left_overs(tree, where)
    refuse_native(tree, where)
    refuse_vendor_edits(vendor_lines(tree), where)
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    if any(node.name == "ModelRunner" and _has_method(node, "forward") for node in classes):
        return
    packages = {module.partition(".")[0] for module in _imported(tree)}
    if "vllm" in packages and "sglang" not in packages:
        raise Refused(
            f"{where}: this is vLLM's model runner; probe-patch patches SGLang's ({MODEL_RUNNER}), so name that"
        )
    for node in classes:
        if any(isinstance(base, ast.Name) and base.id == "ModelRunner" for base in node.bases):
            raise Refused(
                f"{where}, line {node.lineno}: {node.name} only derives from SGLang's ModelRunner; patch the file that "
                f"defines that ({MODEL_RUNNER})"
            )
    if "mlx" in packages:
        raise Refused(
            f"{where}: this runs MLX and not torch, so there is nothing in it to dump; SGLang's ModelRunner is in "
            f"{MODEL_RUNNER}"
        )


def _has_method(node: ast.ClassDef, name: str) -> bool:
    return any(
        isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef) and member.name == name for member in node.body
    )


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (name.name for name in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module
            case _:
                pass
