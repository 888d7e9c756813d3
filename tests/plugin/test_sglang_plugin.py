"""``register`` around a stand-in for ModelRunner's module and for the runtime's ``Probe``."""

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from probe_patch.errors import Refused, WrongUsage
from probe_patch.runtime import sglang as runtime
from probe_patch.sglang_plugin import MODEL_RUNNER, register

MODULE = """
class ModelRunner:
    def __init__(self):
        self.seen = ["built"]
    def forward(self, batch):
        self.seen.append(batch)
        return batch
class Stub(ModelRunner):
    pass
"""
PATCHED = "_probe_patch = None\n" + MODULE
DECORATED = MODULE.replace("    def forward", "    @marked\n    def forward").replace(
    "class ModelRunner",
    "def marked(function):\n    function.__probe_patch__ = True\n    return function\nclass ModelRunner",
)


class StandInProbe:
    """Writes down what is wrapped, and by which name it is called."""

    def __init__(self, config: str | None) -> None:
        assert config is None

    def init(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return self._around(function)

    def forward(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return self._around(function)

    def _around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if hasattr(function, "__probe_patch__"):
            return function

        def around(runner: Any, *args: object) -> object:
            result = function(runner, *args)
            runner.seen.append(f"after {function.__name__}")
            return result

        around.__probe_patch__ = True  # type: ignore[attr-defined]
        return around


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file of ModelRunner's module, not imported yet; modules and the import machinery are put back afterwards."""
    monkeypatch.setattr(runtime, "Probe", StandInProbe)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("DUMP_ON", "1")
    path = tmp_path / (MODEL_RUNNER.replace(".", os.sep) + ".py")
    path.parent.mkdir(parents=True)
    path.write_text(MODULE)
    before = set(sys.modules)
    yield path
    for name in set(sys.modules) - before:
        if name.partition(".")[0] == "sglang":
            del sys.modules[name]


def run(name: str = "ModelRunner") -> list[object]:
    """What happens to a runner that is built and does one forward."""
    runner = getattr(importlib.import_module(MODEL_RUNNER), name)()
    assert runner.forward("batch") == "batch"
    seen: list[object] = runner.seen
    return seen


UNTOUCHED = ["built", "batch"]
WRAPPED = ["built", "after __init__", "batch", "after forward"]


def test_both_methods_are_wrapped(source: Path) -> None:
    register()
    assert MODEL_RUNNER not in sys.modules
    assert run() == WRAPPED


def test_a_subclass_inherits_the_wrappers(source: Path) -> None:
    register()
    assert run("Stub") == WRAPPED


def test_a_module_imported_before_is_wrapped_too(source: Path) -> None:
    importlib.import_module(MODEL_RUNNER)
    register()
    assert run() == WRAPPED


def test_a_module_imported_again_is_wrapped_again(source: Path) -> None:
    register()
    first = importlib.import_module(MODEL_RUNNER)
    importlib.reload(first)
    assert run() == WRAPPED
    del sys.modules[MODEL_RUNNER]
    assert run() == WRAPPED


def test_registering_twice_wraps_once(source: Path) -> None:
    register()
    register()
    assert run() == WRAPPED
    register()
    assert run() == WRAPPED


@pytest.mark.parametrize("written", [None, "", "0", "no"])
def test_off_nothing_happens(source: Path, monkeypatch: pytest.MonkeyPatch, written: str | None) -> None:
    if written is None:
        monkeypatch.delenv("DUMP_ON")
    else:
        monkeypatch.setenv("DUMP_ON", written)
    before = list(sys.meta_path)
    register()
    assert sys.meta_path == before
    assert run() == UNTOUCHED


def test_a_patched_module_stays_as_it_is(source: Path) -> None:
    source.write_text(PATCHED)
    register()
    assert run() == UNTOUCHED


def test_a_method_that_is_ours_already_stays_as_it_is(source: Path) -> None:
    source.write_text(DECORATED)
    register()
    assert run() == ["built", "after __init__", "batch"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ModelRunner = None",
        "class ModelRunner:\n    def __init__(self): ...",
        "class ModelRunner:\n    def forward(self): ...",
        "class ModelRunner:\n    def __init__(self): ...\n    forward = 3",
    ],
    ids=["nothing", "no class", "no forward", "no __init__", "forward is no function"],
)
def test_a_model_runner_of_another_shape_is_refused(source: Path, text: str) -> None:
    source.write_text(text)
    register()
    with pytest.raises(
        Refused, match=r"model_runner has no class ModelRunner with __init__ and forward.*does not know"
    ):
        importlib.import_module(MODEL_RUNNER)


@pytest.mark.parametrize("imported_before", [False, True])
def test_neither_on_nor_off_refuses_to_build_a_runner(
    source: Path, monkeypatch: pytest.MonkeyPatch, imported_before: bool
) -> None:
    if imported_before:
        importlib.import_module(MODEL_RUNNER)
    monkeypatch.setenv("DUMP_ON", "perhaps")
    with pytest.raises(WrongUsage, match="DUMP_ON is 'perhaps'"):
        register()
    monkeypatch.setenv("DUMP_ON", "0")
    for name in ("ModelRunner", "Stub"):
        with pytest.raises(WrongUsage, match="DUMP_ON is 'perhaps'"):
            run(name)
