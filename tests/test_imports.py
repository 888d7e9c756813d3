"""Who may import whom: the arrows of DESIGN.md, read from the sources and tried in fresh interpreters."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import probe_patch

ROOT = Path(probe_patch.__file__).parent
LONGEST = 400

# A part, and what nothing in it may import, anywhere, not even inside a function.
FORBIDDEN: dict[str, tuple[str, ...]] = {
    "patcher": ("torch", "megatron", "ray", "probe_patch.runtime", "probe_patch.compare", "probe_patch.cli"),
    "runtime": ("libcst", "click", "rich", "probe_patch.patcher", "probe_patch.compare", "probe_patch.cli"),
    "compare": ("libcst", "click", "rich", "probe_patch.patcher", "probe_patch.runtime", "probe_patch.cli"),
    "config": ("torch", "libcst", "click", "rich", *(f"probe_patch.{part}" for part in ("patcher", "runtime", "cli"))),
    "launch": (
        *("torch", "libcst", "pydantic", "click", "rich"),
        *(f"probe_patch.{part}" for part in ("patcher", "runtime", "config", "cli")),
    ),
    "demo": ("click", "rich", "torch", "megatron", "ray", "probe_patch.cli", "probe_patch.runtime"),
    "cli": ("torch", "megatron", "ray", "libcst", "probe_patch.runtime"),
    "dump_format.py": ("torch", "libcst", "pydantic", "click", "rich", "probe_patch"),
    "debuggers.py": ("torch", "libcst", "pydantic", "click", "rich", "probe_patch"),
    "errors.py": ("torch", "libcst", "pydantic", "click", "rich", "probe_patch"),
    "gate.py": ("torch", "libcst", "pydantic", "click", "rich"),
    "when_imported.py": ("torch", "libcst", "pydantic", "click", "rich", "probe_patch"),
    "sglang_plugin.py": ("torch", "libcst", "pydantic", "click", "rich", "probe_patch.patcher", "probe_patch.cli"),
}
# The parts that exist from the start; the others are checked once they do.
FROM_THE_START = tuple(part for part in FORBIDDEN if part != "compare")


def sources(part: str = "") -> list[Path]:
    path = ROOT / part
    return [path] if path.is_file() else sorted(path.rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    """Absolute names of what a file imports; of ``from a import b`` both ``a`` and ``a.b``, as b may be a module."""
    package = ".".join(path.relative_to(ROOT.parent).parent.parts)
    for node in ast.walk(ast.parse(path.read_bytes())):
        match node:
            case ast.Import(names=names):
                yield from (name.name for name in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                above = package.rsplit(".", level - 1)[0] if level else ""
                base = ".".join(part for part in (above, module) if part)
                yield base
                yield from (f"{base}.{name.name}" for name in names)
            case _:
                pass


@pytest.mark.parametrize("part", FORBIDDEN)
def test_no_arrow_points_the_wrong_way(part: str) -> None:
    files = sources(part)
    assert files or part not in FROM_THE_START
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in files
        for name in imported(path)
        for forbidden in FORBIDDEN[part]
        if name == forbidden or name.startswith(f"{forbidden}.")
    ]
    assert wrong == []


def test_only_the_command_line_prints() -> None:
    printing = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sources()
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert [place for place in printing if not place.startswith("cli")] == []
    users = {path.relative_to(ROOT).parts[0] for path in sources() if {"click", "rich"} & set(imported(path))}
    assert users == {"cli"}


# A module, and what must not be loaded by importing it in a fresh interpreter.
LIGHT = {
    "probe_patch": ("torch", "libcst", "pydantic", "click", "rich"),
    "probe_patch.config": ("torch", "libcst", "click", "rich"),
    "probe_patch.patcher.verbs": ("torch", "probe_patch.runtime", "probe_patch.cli", "click", "rich"),
    "probe_patch.runtime": ("torch", "libcst", "pydantic", "click", "rich", "probe_patch.patcher"),
    "probe_patch.runtime.slime": ("torch", "libcst", "pydantic", "click", "rich", "probe_patch.patcher"),
    "probe_patch.runtime.debugger": ("libcst", "click", "rich", "probe_patch.patcher", "probe_patch.cli"),
    "probe_patch.runtime.sglang": ("torch", "libcst", "pydantic", "click", "rich", "probe_patch.patcher"),
    "probe_patch.sglang_plugin": ("torch", "libcst", "pydantic", "click", "rich", "probe_patch.runtime"),
    "probe_patch.launch.startup": ("torch", "libcst", "pydantic", "click", "rich", "probe_patch.runtime"),
    "probe_patch.cli": ("torch", "megatron", "ray", "probe_patch.runtime"),
}


@pytest.mark.parametrize("module", LIGHT)
def test_importing_loads_no_more_than_it_needs(module: str) -> None:
    program = f"import sys, {module}; print([name for name in {LIGHT[module]!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_is_long(path: Path) -> None:
    assert len(path.read_bytes().splitlines()) < LONGEST
