"""A module that is waited for is imported as ever, and announced each time it has run."""

import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from probe_patch.when_imported import when_imported

NAME = "awaited_module"


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file of a module that has not been imported; the import machinery is put back afterwards."""
    path = tmp_path / f"{NAME}.py"
    path.write_text("def answer():\n    return 42\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    yield path
    sys.modules.pop(NAME, None)


def test_nothing_is_imported_early(source: Path) -> None:
    seen: list[ModuleType] = []
    when_imported(NAME, seen.append)
    assert NAME not in sys.modules
    module = importlib.import_module(NAME)
    assert seen == [module]
    assert module.answer() == 42


def test_a_module_that_is_there_is_announced_at_once(source: Path) -> None:
    module = importlib.import_module(NAME)
    seen: list[ModuleType] = []
    when_imported(NAME, seen.append)
    assert seen == [module]


def test_every_import_is_announced(source: Path) -> None:
    seen: list[ModuleType] = []
    when_imported(NAME, seen.append)
    first = importlib.import_module(NAME)
    importlib.reload(first)
    del sys.modules[NAME]
    second = importlib.import_module(NAME)
    assert seen == [first, first, second]


def test_everyone_who_waits_is_told(source: Path) -> None:
    seen: list[str] = []
    when_imported(NAME, lambda _: seen.append("first"))
    when_imported(NAME, lambda _: seen.append("second"))
    importlib.import_module(NAME)
    assert sorted(seen) == ["first", "second"]


def test_the_module_is_as_without_us(source: Path) -> None:
    plain = importlib.import_module(NAME)
    loader = type(plain.__loader__)
    del sys.modules[NAME]
    when_imported(NAME, lambda _: None)
    spec = importlib.util.find_spec(NAME)
    assert spec is not None
    assert spec.loader.get_source(NAME) == source.read_text()  # type: ignore[union-attr]
    watched = importlib.import_module(NAME)
    assert type(watched.__loader__) is loader
    assert watched.__spec__ is not None
    assert watched.__spec__.loader is watched.__loader__
    assert inspect.getsource(watched) == source.read_text()
    assert set(vars(watched)) == set(vars(plain))


def test_what_it_raises_the_import_raises(source: Path) -> None:
    def refuse(_: ModuleType) -> None:
        raise LookupError("not this one")

    when_imported(NAME, refuse)
    with pytest.raises(LookupError, match="not this one"):
        importlib.import_module(NAME)
    assert NAME not in sys.modules


def test_a_module_that_cannot_run_fails_with_its_own_error(source: Path) -> None:
    source.write_text("raise ZeroDivisionError('mine')\n")
    seen: list[ModuleType] = []
    when_imported(NAME, seen.append)
    with pytest.raises(ZeroDivisionError, match="mine"):
        importlib.import_module(NAME)
    assert seen == []


def test_a_module_that_does_not_exist_stays_missing(source: Path) -> None:
    when_imported("there_is_no_such_module", lambda _: None)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("there_is_no_such_module")


def test_a_finder_of_the_old_kind_is_passed_over(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", [object(), *sys.meta_path])
    seen: list[ModuleType] = []
    when_imported(NAME, seen.append)
    spec = sys.meta_path[0].find_spec(NAME, None, None)
    assert spec is not None
    assert spec.origin == str(source)
