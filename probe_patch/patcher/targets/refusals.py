"""What keeps any file from being patched, whatever it is: what is left of our blocks, and the vendor's own edits."""

import ast
from collections.abc import Iterable, Iterator

from probe_patch.errors import Refused

_VENDOR_NAMES = ("msprobe", "PrecisionDebugger")


def refuse_left_overs(tree: ast.Module, where: str) -> None:
    """Refuse a file that calls what the prelude defines, outside of any block.

    Raises:
        Refused: with the lines to delete.
    """
    lines = {
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id.startswith(("_probe_patch", "_ProbePatch"))
    }
    if lines:
        raise Refused(
            f"{where}, {line_list(lines)}: left over from a probe-patch block whose markers are gone; delete by hand"
        )


def refuse_vendor_edits(lines: Iterable[int], where: str) -> None:
    """Refuse a file that dumps already.

    Raises:
        Refused: ``lines`` names at least one line.
    """
    numbers = set(lines)
    if numbers:
        raise Refused(
            f"{where}, {line_list(numbers)}: already carries msProbe's hand-made edits (debugger, import or DUMP_ON); "
            "both together would dump twice, so take those lines out first"
        )


def vendor_lines(tree: ast.Module) -> Iterator[int]:
    """The lines that msProbe's page has its readers add to any file: its import, its debugger, ``DUMP_ON``."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names) if any(name.name.split(".")[0] == "msprobe" for name in names):
                yield node.lineno
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] == "msprobe":
                yield node.lineno
            case ast.Constant(value="DUMP_ON"):
                yield node.lineno
            case ast.Name(id=name) if name in _VENDOR_NAMES:
                yield node.lineno
            case _:
                pass


def line_list(lines: set[int]) -> str:
    """``"lines 3, 5"``, the first eight of them."""
    ordered = sorted(lines)
    shown = ", ".join(str(line) for line in ordered[:8]) + (", …" if len(ordered) > 8 else "")
    return f"line{'s' if len(ordered) > 1 else ''} {shown}"
