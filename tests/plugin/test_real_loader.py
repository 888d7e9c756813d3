"""Our entry point, found and called by the plugin loader of real SGLang wheels: dumps, and nothing when off."""

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.sglang.jobs import Job, dumping, forwards_in, patched_sglang, run_jobs
from tests.fixtures.sglang.runs import Plan
from tests.plugin.loader_tree import VERSIONS, Run, add_plugin, add_plugin_loader, lay_out, start
from tests.runtime.dumps import DumpOnDisk

OLDEST, NEWEST = VERSIONS[0], VERSIONS[-1]
# Two forwards that count (prefills of 6 and of 2 tokens), decode steps and a health probe that do not.
PLAN = Plan(
    [
        {"do": "generate", "prompts": [[1, 2, 3, 4], [5, 6]], "new_tokens": 3},
        {"do": "health"},
        {"do": "generate", "prompts": [[7, 8]], "new_tokens": 2},
    ]
)
LIGHT = {f"probe_patch{name}" for name in ("", ".errors", ".gate", ".sglang_plugin", ".when_imported")}

each_wheel = pytest.mark.parametrize("version", VERSIONS)


def switched_on(tree: Path) -> dict[str, str]:
    """The environment of a run that records every step into ``tree/dump``."""
    return dumping(tree / "dump", step=[])


def dumps_in(tree: Path) -> list[DumpOnDisk]:
    return list(forwards_in(tree / "dump"))


def measured(tree: Path) -> list[tuple[Any, Any]]:
    """What one run can share with another: numbers and structure."""
    return [(dump.data, dump.construct) for dump in dumps_in(tree)]


@pytest.fixture(scope="module", params=VERSIONS)
def on_and_off(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run, Run]:
    tree = lay_out(request.param, "native", tmp_path_factory.mktemp("native") / "tree")
    off = start(tree, PLAN, {})
    assert not (tree / "dump").exists()
    assert not (tree / "probe_patch_dump").exists()
    return tree, start(tree, PLAN, switched_on(tree)), off


def test_on_the_forwards_that_count_are_dumped(on_and_off: tuple[Path, Run, Run]) -> None:
    tree, on, _ = on_and_off
    assert on.done().originals == {"__init__": False, "forward": False}
    dumps = dumps_in(tree)
    assert [(dump.meta["step"], dump.meta["forward"]["tokens"]) for dump in dumps] == [(0, 6), (1, 2)]
    assert [dump.meta["forward"]["request_ids"] for dump in dumps] == [["r0", "r1"], ["r0"]]
    assert all("Module.model.layers.0.mlp.TinyMLP.forward.0" in dump.data for dump in dumps)


def test_on_it_computes_what_it_computes_off(on_and_off: tuple[Path, Run, Run]) -> None:
    _, on, off = on_and_off
    assert on.done().numbers() == off.done().numbers()
    assert on.done().hooks == 0


def test_on_the_loader_imports_model_runner_no_earlier_than_sglang(on_and_off: tuple[Path, Run, Run]) -> None:
    _, on, _ = on_and_off
    assert not on.loaded.model_runner_imported
    assert set(on.loaded.ours) <= LIGHT
    assert on.loaded.finders_added == 1


def test_off_nothing_is_touched_and_nothing_heavy_imported(on_and_off: tuple[Path, Run, Run]) -> None:
    _, _, off = on_and_off
    assert off.done().originals == {"__init__": True, "forward": True}
    assert "probe_patch.sglang_plugin" in off.loaded.ours
    assert set(off.loaded.ours) <= LIGHT
    assert set(off.done().ours) <= LIGHT
    assert set(off.loaded.packages) <= {"probe_patch", *sys.stdlib_module_names}
    assert off.loaded.finders_added == 0
    assert not off.loaded.model_runner_imported


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize(
    ("whitelist", "dumped"), [("another", False), ("another, probe-patch", True), ("probe-patch", True)]
)
def test_the_whitelist_is_respected(tmp_path: Path, version: str, whitelist: str, dumped: bool) -> None:
    tree = lay_out(version, "native", tmp_path)
    run = start(tree, PLAN, {**switched_on(tree), "SGLANG_PLUGINS": whitelist})
    assert run.done().originals == {"__init__": not dumped, "forward": not dumped}
    assert len(dumps_in(tree)) == (2 if dumped else 0)
    assert bool(run.loaded.ours) is dumped


@each_wheel
def test_a_value_that_is_neither_stops_the_run_before_the_model_is_loaded(tmp_path: Path, version: str) -> None:
    tree = lay_out(version, "native", tmp_path)
    run = start(tree, PLAN, {**switched_on(tree), "DUMP_ON": "perhaps"})
    assert run.returncode == 1
    assert (
        run.stderr.rstrip()
        .splitlines()[-1]
        .endswith("DUMP_ON is 'perhaps': set it to 1, true, yes or on to dump, or to 0, false, no or off not to")
    )
    assert "Failed to execute general plugin: probe-patch" in run.stderr
    assert not (tree / "dump").exists()


def test_a_bad_config_stops_the_run(tmp_path: Path) -> None:
    tree = lay_out(NEWEST, "native", tmp_path)
    run = start(tree, PLAN, {"DUMP_ON": "1", "PROBE_PATCH_ROLLOUT_CONFIG": str(tree / "there_is_none.json")})
    assert run.returncode == 1
    assert "there_is_none.json" in run.stderr.rstrip().splitlines()[-1]


def test_the_dump_is_the_one_a_patched_sglang_gives(tmp_path: Path) -> None:
    """On a build that has plugins and no dump hook of its own; with the plugin on top, the patch still dumps once."""
    unpatched = lay_out(OLDEST, "F", tmp_path / "unpatched")
    patched = patched_sglang("F", tmp_path / "patched")
    both = add_plugin_loader(OLDEST, patched_sglang("F", tmp_path / "both"))
    for tree in (unpatched, both):
        start(tree, PLAN, switched_on(tree)).done()
    run_jobs({"patched": Job(patched, PLAN, switched_on(patched))}, tmp_path / "jobs")
    assert len(measured(unpatched)) == 2
    assert measured(unpatched) == measured(patched) == measured(both)


AROUND = """
from sglang.srt.plugins.hook_registry import HookRegistry, HookType

def hook(original, runner, batch, *args, **kwargs):
    batch.input_ids = batch.input_ids.clone()
    return original(runner, batch, *args, **kwargs)

def register():
    HookRegistry.register("sglang.srt.model_executor.model_runner.ModelRunner.forward", hook, HookType.AROUND)
"""
CLASS = """
from sglang.srt.plugins.hook_registry import HookRegistry, HookType

def register():
    from sglang.srt.model_executor.model_runner import ModelRunner

    class Own(ModelRunner):
        def forward(self, *args, **kwargs):
            return super().forward(*args, **kwargs)

    HookRegistry.register("sglang.srt.model_executor.model_runner.ModelRunner", Own, HookType.REPLACE)
"""


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("name", ["a_plugin_before_ours", "z_plugin_after_ours"])
@pytest.mark.parametrize("source", [AROUND, CLASS], ids=["around", "class"])
def test_another_plugin_on_model_runner_works_with_ours(tmp_path: Path, version: str, name: str, source: str) -> None:
    tree = lay_out(version, "native", tmp_path)
    add_plugin(tree, name, source)
    run = start(tree, PLAN, switched_on(tree))
    run.done()
    assert "Failed" not in run.stderr
    assert [dump.meta["forward"]["tokens"] for dump in dumps_in(tree)] == [6, 2]


MSPROBE = """
from pathlib import Path

def seed_all(mode):
    pass

class PrecisionDebugger:
    def __init__(self, config_path):
        self.config_path = config_path

    def start(self, model, rank_id):
        Path(self.config_path).open("a").write("start ")

    def stop(self):
        pass

    def step(self):
        pass
"""


@pytest.mark.parametrize("installed", [True, False], ids=["msprobe", "no msprobe"])
def test_with_the_native_flag_as_well_one_of_the_two_dumps(tmp_path: Path, installed: bool) -> None:
    tree = lay_out(OLDEST, "native", tmp_path)
    if installed:
        (tree / "msprobe").mkdir()
        (tree / "msprobe" / "__init__.py").touch()
        (tree / "msprobe" / "pytorch.py").write_text(MSPROBE)
    theirs = tree / "msprobe.log"
    run = start(tree, Plan(PLAN.actions, {"msprobe_dump_config": str(theirs)}), switched_on(tree))
    run.done()
    assert ("--msprobe-dump-config" in run.stderr and "DUMP_ON" in run.stderr) is installed
    assert theirs.exists() is installed
    assert len(dumps_in(tree)) == (0 if installed else 2)
