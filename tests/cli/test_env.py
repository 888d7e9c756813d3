"""``env``: what a run's environment gets, as JSON and as lines for a shell."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.running import run, the_sentence
from tests.needs import needs

CONFIG = '{"dump_path": "/d", "level": "L0"}'
NASTY = [
    "c.json",
    "a b.json",
    "it's.json",
    '"$HOME".json',
    "`id`.json",
    "$(id).json",
    "new\nline.json",
    "ü\udcff;&.json",
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("c.json", "t.json", "r.json"):
        (tmp_path / name).write_text(CONFIG)
    return tmp_path


VARIABLES = [
    ((), {"DUMP_ON": "1"}),
    (("--off",), {"DUMP_ON": "0"}),
    (("--config", "c.json"), {"DUMP_ON": "1", "PROBE_PATCH_CONFIG": "c.json"}),
    (("--config", "./c.json"), {"DUMP_ON": "1", "PROBE_PATCH_CONFIG": "c.json"}),
    (
        ("--train-config", "t.json", "--rollout-config", "r.json"),
        {"DUMP_ON": "1", "PROBE_PATCH_TRAIN_CONFIG": "t.json", "PROBE_PATCH_ROLLOUT_CONFIG": "r.json"},
    ),
    (("--off", "--config", "c.json"), {"DUMP_ON": "0", "PROBE_PATCH_CONFIG": "c.json"}),
]


@pytest.mark.parametrize(("options", "variables"), VARIABLES)
def test_variables_are_strings_and_paths_absolute(
    folder: Path, options: tuple[str, ...], variables: dict[str, str]
) -> None:
    expected = {name: str(folder / value) if value.endswith(".json") else value for name, value in variables.items()}
    outcome = run("env", *options)
    assert (outcome.code, outcome.err) == (0, "")
    assert json.loads(outcome.out) == {"env_vars": expected}
    assert outcome.out.count("\n") == 1
    exported = run("env", "--export", *options)
    assert exported.out.splitlines() == [f"export {name}={value}" for name, value in expected.items()]


def test_merge_keeps_what_is_there(folder: Path) -> None:
    mine = {"working_dir": ".", "pip": ["x"], "env_vars": {"NCCL_DEBUG": "INFO", "DUMP_ON": "0"}}
    merged = json.loads(run("env", "--config", "c.json", "--merge", json.dumps(mine)).out)
    assert merged == {
        "working_dir": ".",
        "pip": ["x"],
        "env_vars": {"NCCL_DEBUG": "INFO", "DUMP_ON": "1", "PROBE_PATCH_CONFIG": str(folder / "c.json")},
    }
    assert json.loads(run("env", "--merge", "{}").out) == {"env_vars": {"DUMP_ON": "1"}}


ERRORS = [
    (("--merge", "{"), "--merge: not JSON (Expecting property name"),
    (("--merge", ""), "--merge: not JSON (Expecting value"),
    (("--merge", "[" * 100_000), "--merge: not JSON ("),
    (("--merge", "[]"), "--merge: give a runtime env, that is an object such as"),
    (("--merge", "null"), "--merge: give a runtime env"),
    (("--merge", '{"env_vars": []}'), "--merge: give a runtime env"),
    (("--merge", '{"env_vars": {"A": 1}}'), "--merge: env_vars.A is 1; Ray takes strings only, so quote it"),
    (("--merge", "{}", "--export"), "--merge adds to a JSON runtime env; it has no meaning with --export"),
    (("--config", "gone.json"), "gone.json does not exist"),
    (("--train-config", "."), ". cannot be read: Is a directory"),
]


@pytest.mark.parametrize(("options", "reason"), ERRORS, ids=lambda value: str(value)[:40])
def test_errors(folder: Path, options: tuple[str, ...], reason: str) -> None:
    outcome = run("env", *options)
    assert outcome.code == 2
    assert reason in the_sentence(outcome)


def test_what_a_config_warns_of_goes_to_stderr(folder: Path) -> None:
    (folder / "c.json").write_text('{"dump_path": "/d", "level": "L0", "stepp": [1]}')
    outcome = run("env", "--config", "c.json")
    assert outcome.err == "note: c.json: unknown key stepp (did you mean step?): it is ignored\n"
    assert json.loads(outcome.out)["env_vars"]["DUMP_ON"] == "1"


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize("name", NASTY, ids=ascii)
def test_export_lines_survive_a_shell(folder: Path, name: str, shell: str) -> None:
    needs(shutil.which(shell) is not None, f"{shell} is not installed")
    (folder / name).write_text(CONFIG)
    lines = run("env", "--export", "--config", name, "--train-config", "t.json").out
    script = 'eval "$1" && printf "%s\\0" "$DUMP_ON" "$PROBE_PATCH_CONFIG" "$PROBE_PATCH_TRAIN_CONFIG"'
    answer = subprocess.run([shell, "-c", script, shell, lines], capture_output=True, check=True)
    values = [os.fsdecode(value) for value in answer.stdout.split(b"\0")]
    assert values == ["1", str(folder / name), str(folder / "t.json"), ""]


PLUGINS = [
    ("mine", True),
    ("mine, other", True),
    ("probe-patch", False),
    ("mine , probe-patch", False),
    ("", False),
    ("probe-patches", True),
]


@pytest.mark.parametrize(("plugins", "said"), PLUGINS)
def test_plugins_that_leave_ours_out_are_said(monkeypatch: pytest.MonkeyPatch, plugins: str, said: bool) -> None:
    note = f"note: SGLANG_PLUGINS is {plugins} and does not name probe-patch: "
    merged = json.dumps({"env_vars": {"SGLANG_PLUGINS": plugins}})
    assert (note in run("env", "--merge", merged).err) == said
    assert run("env", "--off", "--merge", merged).err == ""
    assert run("env").err == ""
    monkeypatch.setenv("SGLANG_PLUGINS", plugins)
    assert (note in run("env", "--export").err) == said


def test_a_merged_variable_that_outranks_the_config_is_said(folder: Path) -> None:
    merged = '{"env_vars": {"PROBE_PATCH_TRAIN_CONFIG": "/other.json"}}'
    outcome = run("env", "--config", "c.json", "--merge", merged)
    assert (
        "note: --merge already sets PROBE_PATCH_TRAIN_CONFIG, which that side reads instead of --config" in outcome.err
    )
    assert run("env", "--train-config", "t.json", "--merge", merged).err == ""
