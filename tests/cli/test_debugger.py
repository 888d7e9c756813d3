"""``--debugger``: the same patch, driving our own debugger or msProbe's."""

import json
from pathlib import Path

import pytest

from probe_patch.debuggers import DEBUGGERS, DebuggerName
from probe_patch.demo.fixture import ERAS, actor_file, lay_out
from probe_patch.launch.native import hook_sentence, native_sentence
from probe_patch.patcher.request import Request
from probe_patch.patcher.rewrite import apply, inspect
from tests.cli.running import run, the_sentence
from tests.cli.trees import ORIGINAL, checkout, contents
from tests.fixtures.sglang.trees import PATCHED, VERSIONS, lay_out_sglang, runner_file
from tests.patcher.rounds import check_round

WAYS = [("--debugger", name) for name in DEBUGGERS]
LIMITS = "msProbe records: the gradients may change in their last bits"


@pytest.mark.parametrize("era", ERAS)
def test_the_whole_round_on_every_slime(tmp_path: Path, era: str) -> None:
    tree = lay_out(era, tmp_path / "tree")
    check_round(tree, tree / actor_file(era), WAYS)


@pytest.mark.parametrize("era", PATCHED)
def test_the_whole_round_on_every_sglang(tmp_path: Path, era: str) -> None:
    tree = lay_out_sglang(era, tmp_path / "tree")
    check_round(tree, tree / runner_file(era), WAYS)


@pytest.fixture
def actor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return checkout(tmp_path)


def test_the_two_patches_differ_in_one_word_of_the_prelude(actor: Path) -> None:
    sources = []
    for way in WAYS:
        run("apply", *way)
        sources.append(actor.read_text().splitlines())
    builtin, msprobe = sources
    differing = [pair for pair in zip(builtin, msprobe, strict=True) if pair[0] != pair[1]]
    assert [line.replace("builtin", "msprobe") for line, _ in differing] == [line for _, line in differing]
    assert [line.split("(")[0].split("{")[0] for line, _ in differing] == [
        "# >>> probe-patch prelude ",
        "_probe_patch = _ProbePatch",
    ]


def test_another_debugger_replaces_the_one_before_and_a_lost_one_is_said(actor: Path) -> None:
    assert run("apply", "--debugger", "msprobe", "--phases", "ref").code == 0
    assert run("check").code == 0
    outcome = run("apply")
    assert "no longer drives msprobe; apply with --debugger msprobe to drive it again\n" in outcome.err
    assert actor.read_bytes() == apply(ORIGINAL, Request(), "actor.py").source
    assert "no longer drives" not in run("apply", "--debugger", "msprobe").err
    assert actor.read_bytes() == apply(ORIGINAL, Request(debugger="msprobe"), "actor.py").source
    assert "no longer drives" not in run("apply", "--debugger", "msprobe", "--phases", "old").err


@pytest.mark.parametrize("name", DEBUGGERS)
def test_what_msprobe_lacks_is_said_on_either_side(tmp_path: Path, name: DebuggerName) -> None:
    checkout(tmp_path)
    lay_out_sglang("F", tmp_path)
    said = [line for line in run("apply", tmp_path, "--debugger", name).err.splitlines() if LIMITS in line]
    assert len(said) == (2 if name == "msprobe" else 0)


def test_json_and_diff_carry_it(actor: Path) -> None:
    before = contents(actor.parent)
    (file,) = json.loads(run("apply", "--debugger", "msprobe", "--diff", "--format", "json").out)["files"]
    assert (file["debugger"], file["would_change"], file["changed"]) == ("msprobe", True, False)
    diff = run("apply", "--debugger", "msprobe", "--diff").out
    assert "+_probe_patch = _ProbePatch(phases=('ref', 'old', 'actor'), config=None, debugger='msprobe')" in diff
    assert contents(actor.parent) == before
    run("apply", "--debugger", "msprobe")
    (file,) = json.loads(run("check", "--debugger", "builtin", "--format", "json").out)["files"]
    assert (file["debugger"], file["as_expected"]) == ("msprobe", False)
    assert file["notes"] == ["drives the debugger msprobe, not builtin"]


def test_a_marker_from_before_there_was_a_choice_is_the_built_in_ones() -> None:
    patched = apply(ORIGINAL, Request(), "actor.py").source
    earlier = patched.replace(b', "debugger": "builtin"', b"")
    assert earlier != patched
    assert inspect(earlier, "actor.py").request == Request()


def test_a_marker_with_an_unknown_debugger_was_changed_by_hand() -> None:
    patched = apply(ORIGINAL, Request(), "actor.py").source
    assert inspect(patched.replace(b'"builtin"', b'"other"'), "actor.py").request is None


CONFIGS = [
    ({"dump_path": "/d", "level": "L2", "task": "tensor"}, None),
    ({"dump_path": "/d", "a_key_of_tomorrow": 1, "step": ["0-3"], "rollout": {"modes": ["decode"]}}, None),
    ({"level": "L0"}, "dump_path is missing; write where the dump shall go"),
    ({"dump_path": "~/d"}, 'dump_path: "~/d" is taken literally; write the path in full'),
    ({"dump_path": "/d", "step": 3}, 'step must be a list such as [0, "3-5"], not 3'),
    ({"dump_path": "/d", "rollout": {"min_tokens": "2"}}, 'rollout.min_tokens must be a whole number, not "2"'),
]


@pytest.mark.parametrize(("document", "refusal"), CONFIGS)
def test_of_a_config_for_msprobe_only_what_we_act_on_is_judged(
    actor: Path, tmp_path: Path, document: dict[str, object], refusal: str | None
) -> None:
    config = tmp_path / "c.json"
    config.write_text(json.dumps(document))
    outcome = run("apply", "--debugger", "msprobe", "--config", config)
    if refusal is None:
        assert outcome.code == 0
        assert str(config).encode() in actor.read_bytes()
    else:
        assert (outcome.code, the_sentence(outcome)) == (2, f"{config}: {refusal}")
        assert actor.read_bytes() == ORIGINAL


@pytest.mark.parametrize("command", [("env",), ("launch-args", "--sglang-version", "0.5.9")])
def test_a_config_that_only_msprobe_serves_is_taken_where_its_debugger_is_named(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    config = tmp_path / "c.json"
    config.write_text('{"dump_path": "/d", "level": "L2", "task": "tensor"}')
    assert run(*command, "--config", config).code == 2
    assert run(*command, "--config", config, "--debugger", "msprobe").code == 0


def test_a_native_sglang_is_left_to_its_own_hook(tmp_path: Path) -> None:
    file = lay_out_sglang("native", tmp_path / "alone") / runner_file("native")
    outcome = run("apply", tmp_path / "alone", "--debugger", "msprobe")
    assert (outcome.code, the_sentence(outcome)) == (3, f"{file}: {hook_sentence(VERSIONS['native'])}")
    both = tmp_path / "both"
    file = lay_out_sglang("native", both) / runner_file("native")
    checkout(both)
    config = tmp_path / "c.json"
    config.write_text('{"dump_path": "/d"}')
    outcome = run("apply", both, "--debugger", "msprobe", "--config", config)
    assert outcome.code == 0
    assert [line for line in outcome.err.splitlines() if str(file) in line] == [
        f"note: {file}: {hook_sentence(VERSIONS['native'])}"
    ]


def test_the_hook_and_the_plugin_are_told_apart() -> None:
    hook, plugin = hook_sentence("0.5.12"), native_sentence("0.5.12")
    assert "start the server with --msprobe-dump-config CONFIG --disable-cuda-graph" in hook
    assert "or slime with --sglang-msprobe-dump-config CONFIG --sglang-disable" in hook
    assert "--msprobe-dump-config is msProbe's own hook, leave it out" in plugin
