"""``config init`` and ``config check``."""

import json
from pathlib import Path

import pytest

from probe_patch.config import load_config
from tests.cli.running import run, the_sentence
from tests.cli.trees import contents


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


INITS = [
    ((), "config.json", "probe_patch_dump"),
    (("mine.json",), "mine.json", "probe_patch_dump"),
    (('sub/ü "x".json',), 'sub/ü "x".json', "sub/probe_patch_dump"),
    (("--dump-path", "out"), "config.json", "out"),
    (("--dump-path", 'it\'s "so"\\n'), "config.json", 'it\'s "so"\\n'),
    (("--dump-path", "{dump_path}"), "config.json", "{dump_path}"),
]


@pytest.mark.parametrize(("arguments", "file", "dump_path"), INITS)
def test_init_writes_a_config_that_is_good(folder: Path, arguments: tuple[str, ...], file: str, dump_path: str) -> None:
    (folder / "sub").mkdir()
    outcome = run("config", "init", *arguments)
    assert (outcome.code, outcome.out) == (0, f"{file}\n")
    assert f"dumps go to {folder / dump_path}" in outcome.err
    loaded = load_config(folder / file)
    assert loaded.config.dump_path == str(folder / dump_path)
    assert loaded.warnings == ()
    checked = run("config", "check", file)
    assert (checked.code, checked.out, checked.err) == (0, f"{file}: good\n", "")


@pytest.mark.parametrize(("name", "arguments"), [("plain", ("--dump-path", "~/dump")), ("a$b", ())])
def test_init_writes_nothing_that_check_would_refuse(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, arguments: tuple[str, ...]
) -> None:
    (folder / name).mkdir()
    monkeypatch.chdir(folder / name)
    outcome = run("config", "init", *arguments)
    assert outcome.code == 2
    assert "is taken literally; write the path in full" in the_sentence(outcome)
    assert not list((folder / name).iterdir())


def test_what_check_prints_as_json_is_a_config_of_the_same_meaning(folder: Path) -> None:
    (folder / "c.json").write_text('{"dump_path": "/d", "level": "L0", "statistics": {"list": ["linear_fc1"]}}')
    (folder / "printed.json").write_text(run("config", "check", "c.json", "--format", "json").out)
    printed = load_config(folder / "printed.json")
    assert printed.warnings == ()
    assert printed.config.statistics.list_ == ["linear_fc1"]


REFUSED = [
    ("there.json", 3, "there.json: is there already; name another file, or remove it first"),
    ("sub", 3, "sub: is there already"),
    ("dangling.json", 3, "dangling.json: is there already"),
    ("gone/config.json", 4, "gone/config.json: cannot be written (No such file or directory)"),
    ("there.json/config.json", 4, "there.json/config.json: cannot be written (Not a directory)"),
]


@pytest.mark.parametrize(("file", "code", "reason"), REFUSED)
def test_init_overwrites_nothing(folder: Path, file: str, code: int, reason: str) -> None:
    (folder / "there.json").write_text("mine")
    (folder / "sub").mkdir()
    (folder / "dangling.json").symlink_to("elsewhere.json")
    before = contents(folder)
    outcome = run("config", "init", file)
    assert outcome.code == code
    assert reason in the_sentence(outcome)
    assert contents(folder) == before


def test_check_prints_the_whole_config_as_json(folder: Path) -> None:
    (folder / "c.json").write_text('{"dump_path": "/d", "step": ["3-5"]}')
    outcome = run("config", "check", "c.json", "--format", "json")
    assert outcome.code == 0
    document = json.loads(outcome.out)
    assert (document["dump_path"], document["step"], document["task"]) == ("/d", [3, 4, 5], "statistics")
    assert outcome.err == ""


BAD = [
    ("{", "c.json:1:2: not JSON"),
    ("[]", "c.json: must hold a JSON object {...}, not []"),
    ('{"level": "L0"}', "c.json: dump_path is missing; write where the dump shall go"),
    ('{"dump_path": "/d", "dump_path": "/e"}', 'c.json: the key "dump_path" stands there twice; keep one'),
    (
        '{"dump_path": "/d", "level": "L2"}',
        'c.json: level is "L2", which records the kernels of an NPU and is msProbe\'s alone; write "mix"',
    ),
    ('{"dump_path": 5}', "c.json: dump_path must be a string, not 5"),
]


@pytest.mark.parametrize("output", ["text", "json"])
@pytest.mark.parametrize(("text", "reason"), BAD)
def test_a_bad_config_is_one_sentence(folder: Path, text: str, reason: str, output: str) -> None:
    (folder / "c.json").write_text(text)
    outcome = run("config", "check", "c.json", "--format", output)
    assert outcome.code == 2
    assert the_sentence(outcome).startswith(reason)
