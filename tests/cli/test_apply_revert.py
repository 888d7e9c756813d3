"""``apply`` and ``revert`` on trees where all is well."""

import json
from pathlib import Path

import pytest

from probe_patch import __version__
from probe_patch.dump_format import Phase
from probe_patch.patcher.request import ALL_PHASES, Request
from probe_patch.patcher.rewrite import apply
from tests.cli.running import run
from tests.cli.trees import ORIGINAL, checkout, contents


def patched(*phases: Phase, version: str = __version__) -> bytes:
    return apply(ORIGINAL, Request(phases or ALL_PHASES, None, version), "actor.py").source


@pytest.fixture
def actor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return checkout(tmp_path)


SHOWN = "slime/backends/megatron_utils/actor.py"


def test_the_whole_loop(actor: Path) -> None:
    applied = run("apply")
    assert (applied.code, applied.out) == (0, f"{SHOWN}: patched for ref, old, actor\n")
    assert actor.read_bytes() == patched()
    assert f"note: {SHOWN}: phase ref runs only with a reference model" in applied.err

    again = run("apply")
    assert (again.code, again.out, again.err) == (0, f"{SHOWN}: already patched for ref, old, actor\n", "")
    assert actor.read_bytes() == patched()

    reverted = run("revert")
    assert (reverted.code, reverted.out, reverted.err) == (0, f"{SHOWN}: reverted\n", "")
    assert actor.read_bytes() == ORIGINAL

    again = run("revert")
    assert (again.code, again.out, again.err) == (0, f"{SHOWN}: already unpatched\n", "")
    assert actor.read_bytes() == ORIGINAL


@pytest.mark.parametrize(
    ("written", "phases"),
    [
        ("ref", ("ref",)),
        ("actor,ref", ("ref", "actor")),
        (" old ,  ref ", ("ref", "old")),
        ("old,old,actor,old", ("old", "actor")),
        ("ref,old,actor", ("ref", "old", "actor")),
    ],
)
def test_phases_in_any_order_with_spaces_and_repeats(actor: Path, written: str, phases: tuple[Phase, ...]) -> None:
    outcome = run("apply", "--phases", written)
    assert (outcome.code, outcome.out) == (0, f"{SHOWN}: patched for {', '.join(phases)}\n")
    assert actor.read_bytes() == patched(*phases)


@pytest.mark.parametrize(
    "before",
    [patched("old"), patched(version="0.0.1"), patched("ref", version="99.0")],
    ids=["phases", "older", "newer"],
)
def test_another_patch_is_replaced(actor: Path, before: bytes) -> None:
    actor.write_bytes(before)
    assert run("apply").code == 0
    assert actor.read_bytes() == patched()
    actor.write_bytes(before)
    assert run("revert").code == 0
    assert actor.read_bytes() == ORIGINAL


def test_edits_elsewhere_stay(actor: Path) -> None:
    run("apply")
    actor.write_bytes(actor.read_bytes().replace(b"return 1", b"return 2  # mine"))
    outcome = run("revert")
    assert (outcome.code, outcome.err) == (0, "")
    assert actor.read_bytes() == ORIGINAL.replace(b"return 1", b"return 2  # mine")


@pytest.mark.parametrize("command", [("revert",), ("apply", "--phases", "ref")], ids=" ".join)
def test_a_line_written_between_our_markers_is_named_when_it_goes(actor: Path, command: tuple[str, ...]) -> None:
    run("apply")
    ours = b"_probe_patch.start(self, 'actor')\n"
    assert actor.read_bytes().count(ours) == 1
    actor.write_bytes(actor.read_bytes().replace(ours, ours + b"                print('mine')\n"))
    outcome = run(*command)
    assert outcome.code == 0
    notes = [line for line in outcome.err.splitlines() if "by hand" in line]
    assert notes == [f"note: {SHOWN}: takes away a line that was added between its markers by hand: print('mine')"]
    assert b"mine" not in actor.read_bytes()


def test_json_says_what_was_done(actor: Path) -> None:
    outcome = run("apply", "--phases", "actor", "--format", "json")
    document = json.loads(outcome.out)
    (file,) = document.pop("files")
    assert document == {"tool": "probe-patch", "version": __version__, "command": "apply", "dry_run": False}
    assert file == {
        "path": str(actor),
        "shown": SHOWN,
        "side": "train",
        "state": "patched",
        "changed": True,
        "would_change": True,
        "as_expected": True,
        "patched_by": __version__,
        "phases": ["actor"],
        "config": None,
        "debugger": "builtin",
        "notes": file["notes"],
        "error": None,
    }
    assert outcome.err == ""
    (again,) = json.loads(run("apply", "--phases", "actor", "--format", "json").out)["files"]
    assert (again["state"], again["changed"], again["would_change"]) == ("patched", False, False)
    (reverted,) = json.loads(run("revert", "--format", "json").out)["files"]
    assert (reverted["state"], reverted["changed"], reverted["phases"]) == ("unpatched", True, [])


CONFIG_NAMES = [
    "config.json",
    "a b.json",
    'it\'s "so".json',
    "new\nline.json",
    "#{}\\n.json",
    "ü雪.json",
    "\udcff.json",
]


@pytest.mark.parametrize("name", CONFIG_NAMES, ids=ascii)
def test_the_config_goes_in_by_its_absolute_path(actor: Path, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "configs"
    folder.mkdir()
    assert run("config", "init", f"configs/{name}").code == 0
    outcome = run("apply", "--config", f"configs/{name}")
    assert outcome.code == 0
    assert outcome.out == f"{SHOWN}: patched for ref, old, actor with {folder}/{name}\n"
    assert actor.read_bytes() == apply(ORIGINAL, Request(config=f"{folder}/{name}"), "actor.py").source
    (found,) = json.loads(run("status", "--format", "json").out)["files"]
    assert (found["state"], found["config"]) == ("patched", f"{folder}/{name}")
    assert run("check").code == 0
    assert run("revert").code == 0
    assert actor.read_bytes() == ORIGINAL


def test_a_config_that_has_something_to_say_is_used(actor: Path, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text('{"dump_path": "/d", "level": "L0", "stepp": [1]}')
    outcome = run("apply", "--config", "c.json")
    assert outcome.code == 0
    assert "note: c.json: unknown key stepp (did you mean step?): it is ignored" in outcome.err
    assert actor.read_bytes() != ORIGINAL


def test_mode_and_everything_around_stay(actor: Path, tmp_path: Path) -> None:
    actor.chmod(0o751)
    (actor.parent / "model.py").write_text("x = 1\n")
    before = contents(tmp_path)
    run("apply")
    after = contents(tmp_path)
    assert {name for name in after if after[name] != before.get(name)} == {SHOWN}
    run("revert")
    assert contents(tmp_path) == before


def test_a_link_is_followed_and_said_and_stays_a_link(actor: Path, tmp_path: Path) -> None:
    (tmp_path / "second.py").symlink_to(actor)
    (tmp_path / "first.py").symlink_to("second.py")
    outcome = run("apply", "first.py")
    assert outcome.code == 0
    assert f"note: first.py: is a symbolic link; the file patched is {actor}" in outcome.err
    assert outcome.out == "first.py: patched for ref, old, actor\n"
    assert actor.read_bytes() == patched()
    assert (tmp_path / "first.py").readlink() == Path("second.py")
    assert (tmp_path / "second.py").readlink() == actor


def test_a_file_named_three_times_is_patched_once(actor: Path, tmp_path: Path) -> None:
    (tmp_path / "link.py").symlink_to(actor)
    outcome = run("apply", tmp_path, actor, "link.py", "./slime/../slime")
    assert (outcome.code, outcome.out) == (0, f"{actor}: patched for ref, old, actor\n")
    assert actor.read_bytes() == patched()


def test_a_path_that_is_no_text_is_printed_as_it_is(tmp_path: Path) -> None:
    actor = checkout(tmp_path / "\udcff 雪")
    outcome = run("apply", tmp_path / "\udcff 雪")
    assert (outcome.code, outcome.out) == (0, f"{actor}: patched for ref, old, actor\n")
    assert actor.read_bytes() == patched()


def test_both_packages_of_one_tree_are_patched(actor: Path, tmp_path: Path) -> None:
    fork = checkout(tmp_path, package="miles")
    assert run("apply", tmp_path).out.count(": patched for") == 2
    assert actor.read_bytes() == fork.read_bytes() == patched()


def test_a_config_that_a_later_apply_does_not_name_is_missed_aloud(actor: Path, tmp_path: Path) -> None:
    assert run("config", "init", "c.json").code == 0
    assert run("apply", "--config", "c.json").code == 0
    outcome = run("apply")
    assert f"no longer names {tmp_path / 'c.json'}" in outcome.err
    assert actor.read_bytes() == apply(ORIGINAL, Request(), "actor.py").source
    assert "no longer names" not in run("apply").err
