"""Compiling modules that have a .pxd beside them, and importing what was compiled only where it fits its sources."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import hatch_build
from hatch_build import ROOT, NotBuilt, build_in_place
from probe_patch.runtime.build_stamp import STAMP, SUFFIX, read_stamp
from probe_patch.runtime.compiled import NEVER_BUILT, STALE
from tests.needs import needs

RUNTIME = Path("probe_patch", "runtime")
MODULES = {
    "inner.py": "class Counter:\n    def __init__(self):\n        self.count = 1\n",
    "inner.pxd": "cdef class Counter:\n    cdef public long count\n",
    "deep/__init__.py": "",
    "deep/outer.py": "from probe_patch.runtime.inner import Counter\n\n\ndef count():\n    return Counter().count\n",
    "deep/outer.pxd": "from probe_patch.runtime.inner cimport Counter\ncpdef object count()\n",
    "plain.py": "",
}
PROGRAM = """
from probe_patch.runtime import compiled, inner, plain
from probe_patch.runtime.deep import outer
print([module.__file__.endswith(".so") for module in (inner, outer, plain)], outer.count())
print(compiled.SHORTCOMING)
"""

Tree = Path


def changed(place: str, was: str, becomes: str) -> Callable[[Tree], None]:
    def change(tree: Tree) -> None:
        file = tree / RUNTIME / place
        text = file.read_text()
        assert was in text
        file.write_text(text.replace(was, becomes))

    return change


def without(*places: str) -> Callable[[Tree], None]:
    def remove(tree: Tree) -> None:
        for place in places:
            (tree / place).unlink()

    return remove


def compiled_files(tree: Tree) -> list[str]:
    return sorted(path.relative_to(tree / RUNTIME).as_posix() for path in tree.rglob(f"*{SUFFIX}"))


def imported(tree: Tree) -> tuple[str, str]:
    """What is imported compiled and what it counts; and what is said of it."""
    # In a folder whose name Python leaves as it is, with another slash than it needs.
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {f'{tree.parent}//{tree.name}'!r})\n{PROGRAM}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tree.parent)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    return first, second


@pytest.fixture
def sources(tmp_path: Path) -> Tree:
    """A package of two modules to compile and one not to."""
    tree = tmp_path / "sources"
    for place, content in MODULES.items():
        (tree / RUNTIME / place).parent.mkdir(parents=True, exist_ok=True)
        (tree / RUNTIME / place).write_text(content)
    for place in ("probe_patch/__init__.py", "probe_patch/runtime/__init__.py"):
        shutil.copy(ROOT / place, tree / place)
    for name in ("build_stamp.py", "compiled.py", "log.py"):
        shutil.copy(ROOT / RUNTIME / name, tree / RUNTIME / name)
    return tree


@pytest.fixture(scope="module")
def built_once(tmp_path_factory: pytest.TempPathFactory) -> list[Tree]:
    """Once there is one, the tree that was built; the fixture ``tree`` copies it."""
    return []


@pytest.fixture
def tree(sources: Tree, built_once: list[Tree], tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """``sources``, compiled."""
    if not built_once:
        needs(shutil.which("cc") is not None, "a C compiler is missing")
        build_in_place(sources)
        built_once.append(tmp_path_factory.mktemp("built") / "tree")
        shutil.copytree(sources, built_once[0])
    shutil.copytree(built_once[0], sources, dirs_exist_ok=True)
    return sources


def test_what_has_a_pxd_is_compiled_and_imported_so(tree: Tree) -> None:
    assert compiled_files(tree) == [f"deep/outer{SUFFIX}", f"inner{SUFFIX}"]
    assert imported(tree) == ("[True, True, False] 1", "None")


def test_without_a_build_it_is_plain_python_and_says_so(sources: Tree) -> None:
    assert imported(sources) == ("[False, False, False] 1", NEVER_BUILT)


@pytest.mark.parametrize(
    ("change", "count"),
    [
        pytest.param(changed("inner.py", "= 1", "= 2"), 2, id="a changed source"),
        pytest.param(changed("inner.pxd", "long", "int"), 1, id="a changed declaration"),
        pytest.param(changed("../../" + STAMP, '"sources": "', '"sources": "0'), 1, id="a stamp of other sources"),
        pytest.param(without(STAMP), 1, id="no stamp"),
        pytest.param(without(str(RUNTIME / f"inner{SUFFIX}")), 1, id="one of two missing"),
        pytest.param(without(str(RUNTIME / "deep/outer.pxd")), 1, id="a declaration that is gone"),
    ],
)
def test_what_does_not_fit_its_sources_is_not_imported(tree: Tree, change: Callable[[Tree], None], count: int) -> None:
    change(tree)
    assert imported(tree) == (f"[False, False, False] {count}", STALE)
    build_in_place(tree)
    outer_is_compiled = (tree / RUNTIME / "deep/outer.pxd").exists()
    assert imported(tree) == (f"[True, {outer_is_compiled}, False] {count}", "None")


def test_a_build_that_fits_is_left_alone_and_another_builder_builds_anew(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_again(*_: object) -> None:
        raise NotBuilt("it was up to date")

    monkeypatch.setattr(hatch_build, "build_modules", not_again)
    build_in_place(tree)
    changed("../../" + STAMP, '"builder": "', '"builder": "0')(tree)
    with pytest.raises(NotBuilt, match="it was up to date"):
        build_in_place(tree)


def broken_source(tree: Tree, _: pytest.MonkeyPatch) -> None:
    changed("deep/outer.pxd", "count()", "counts()")(tree)


def no_compiler(_: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")


def broken_compiler(_: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "false")


def no_header(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tree))


def no_cython(_: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "Cython", None)


def test_a_declaration_without_a_source_is_told(sources: Tree) -> None:
    (sources / RUNTIME / "alone.pxd").write_text("")
    with pytest.raises(NotBuilt, match=r"No such file or directory: .*alone\.py"):
        build_in_place(sources)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (broken_source, "Cython finds"),
        (no_compiler, "there is no C compiler"),
        (broken_compiler, "false fails: "),
        (no_header, "there is no Python.h in "),
        (no_cython, "there is no Cython"),
    ],
)
def test_where_one_cannot_be_compiled_none_is_and_what_was_there_is_gone(
    tree: Tree,
    monkeypatch: pytest.MonkeyPatch,
    damage: Callable[[Tree, pytest.MonkeyPatch], None],
    reason: str,
) -> None:
    changed("inner.py", "= 1", "= 2")(tree)
    damage(tree, monkeypatch)
    with pytest.raises(NotBuilt, match=reason):
        build_in_place(tree)
    monkeypatch.undo()
    assert compiled_files(tree) == []
    assert read_stamp(tree) is None
    assert imported(tree) == ("[False, False, False] 2", NEVER_BUILT)
