"""SGLang 0.5.11 and later dump by themselves: recognised by what is in the source, whatever its number says."""

import ast
from pathlib import Path
from typing import ClassVar

from probe_patch.config import Side
from probe_patch.debuggers import BUILTIN, DebuggerName
from probe_patch.launch.native import hook_sentence, native_sentence
from probe_patch.launch.source import read_fields
from probe_patch.launch.version import find_version
from probe_patch.patcher.targets.kind import NeedsNoPatch
from probe_patch.patcher.targets.sglang.places import SGLANG_PLACES

_HOOK = frozenset({"msprobe_dump_config", "msprobe_debugger", "init_msprobe", "create_msprobe_debugger"})


class NativeHook(NeedsNoPatch):
    """The file carries SGLang's own hook."""

    side: ClassVar[Side] = "rollout"

    def instead(self, path: Path, modes: frozenset[str], debugger: DebuggerName) -> str:
        """The flags to use, for the version that ``path`` belongs to."""
        sentence = native_sentence if debugger == BUILTIN else hook_sentence
        package = SGLANG_PLACES.package_of(path)
        return (
            sentence(None, modes) if package is None else sentence(find_version(package), modes, read_fields(package))
        )


def refuse_native(tree: ast.Module, where: str) -> None:
    """Refuse a file that carries SGLang's own hook.

    Raises:
        NativeHook: it does.
    """
    if any(_name_of(node) in _HOOK for node in ast.walk(tree)):
        raise NativeHook(f"{where}: this SGLang carries its own dump hook and needs no patch")


def _name_of(node: ast.AST) -> str | None:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.FunctionDef(name=name) | ast.alias(name=name):
            return name
        case _:
            return None
