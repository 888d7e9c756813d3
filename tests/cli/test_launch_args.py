"""``launch-args``: flags on stdout, reasons on stderr."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import run, run_in_process, the_sentence

FLAGS_0_5_9 = "--disable-cuda-graph --skip-server-warmup --disable-radix-cache --chunked-prefill-size -1"
SERVER_ARGS = "class ServerArgs:\n    disable_cuda_graph: bool = False\n    disable_radix_cache: bool = False\n"


def lay_out(folder: Path, version: str | None = "0.5.9", server_args: str = SERVER_ARGS) -> Path:
    package = folder / "sglang"
    (package / "srt").mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('imported')\n")
    (package / "srt" / "server_args.py").write_text(server_args)
    if version is not None:
        (package / "version.py").write_text(f'__version__ = "{version}"\n')
    return package


NAMED = [
    (("--sglang-version", "0.5.9"), FLAGS_0_5_9),
    (
        ("--sglang-version", "0.5.9", "--for", "slime"),
        "--sglang-disable-cuda-graph --sglang-disable-radix-cache --sglang-chunked-prefill-size -1",
    ),
    (("--sglang-version", "0.2.0"), "--disable-cuda-graph --disable-radix-cache"),
    (("--sglang-version", "0.5.9", "--environment"), "SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION=0"),
    (("--sglang-version", "0.5.5", "--environment"), ""),
]


@pytest.mark.parametrize(("options", "line"), NAMED)
def test_stdout_holds_one_line_that_a_shell_splits_into_words(options: tuple[str, ...], line: str) -> None:
    outcome = run("launch-args", *options)
    assert (outcome.code, outcome.out) == (0, f"{line}\n")
    assert all(said.startswith("note: ") for said in outcome.err.splitlines())
    assert shlex.split(outcome.out) == line.split()


def test_every_flag_has_its_reason_on_stderr() -> None:
    err = run("launch-args", "--sglang-version", "0.5.9").err
    for what in (
        "--disable-cuda-graph",
        "--skip-server-warmup",
        "--disable-radix-cache",
        "--chunked-prefill-size -1",
    ):
        assert f"note: {what}: without it, " in err
    assert "note: set SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION=0: without it, " in err
    assert "note: leave out --enable-piecewise-cuda-graph: with it, " in err


def test_a_native_version_is_told_what_dumps_and_what_does_not() -> None:
    err = run("launch-args", "--sglang-version", "0.5.12").err
    assert "with DUMP_ON=1 the plugin of probe-patch dumps" in err
    assert "--msprobe-dump-config turns on msProbe's hook" in err
    assert "plugin" not in run("launch-args", "--sglang-version", "0.5.10.post1").err


TREES = [".", "sglang", "sglang/srt", "sglang/srt/server_args.py", "checkout"]


@pytest.mark.parametrize("tree", TREES)
def test_the_tree_is_a_checkout_a_folder_of_packages_the_package_or_in_it(tmp_path: Path, tree: str) -> None:
    lay_out(tmp_path / "checkout" / "python" if tree == "checkout" else tmp_path)
    outcome = run("launch-args", tmp_path / tree)
    assert outcome.code == 0
    assert outcome.out == "--disable-cuda-graph --disable-radix-cache\n"  # its ServerArgs has no other field
    assert "note: SGLang 0.5.9 in " in outcome.err


def test_without_a_tree_it_is_the_one_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert "note: SGLang 0.5.9 in sglang\n" in run("launch-args").err


def test_or_the_one_that_an_interpreter_would_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = lay_out(tmp_path / "site")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    asked = run("launch-args", "--python", sys.executable)
    assert f"note: SGLang 0.5.9 in {package}\n" in asked.err
    assert run_in_process("launch-args", cwd=tmp_path / "empty").out == asked.out


def test_a_version_that_nothing_tells_is_read_off_the_source(tmp_path: Path) -> None:
    lay_out(tmp_path, None, SERVER_ARGS + "    disable_piecewise_cuda_graph: bool = False\n")
    outcome = run("launch-args", tmp_path)
    assert outcome.out == "--disable-cuda-graph --disable-piecewise-cuda-graph --disable-radix-cache\n"
    assert "note: SGLang of unknown version in " in outcome.err


def test_a_development_build_without_its_source_is_pointed_out(tmp_path: Path) -> None:
    say = "a development build or pre-release may have other flags"
    assert say in run("launch-args", "--sglang-version", "0.5.9rc1").err
    assert say in run("launch-args", "--sglang-version", "0.5.10.dev3+g1").err
    lay_out(tmp_path, "0.5.10.dev3+g1", SERVER_ARGS + "    msprobe_dump_config: str | None = None\n")
    outcome = run("launch-args", tmp_path)
    assert say not in outcome.err
    assert "with DUMP_ON=1 the plugin" in outcome.err


CONFIGS = [
    ({}, False, True),
    ({"modes": ["decode"]}, True, False),
    ({"modes": ["extend", "decode"]}, True, True),
    ({"modes": ["all"]}, True, True),
    ({"decode": {"modes": ["decode"]}}, True, True),
    ({"modes": ["decode"], "prefill": {"modes": ["extend"]}}, True, True),
]


@pytest.mark.parametrize(("rollout", "decode", "extend"), CONFIGS)
def test_the_config_says_which_forwards(tmp_path: Path, rollout: object, decode: bool, extend: bool) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"dump_path": "/d", "level": "L0", "rollout": rollout}))
    outcome = run("launch-args", "--sglang-version", "0.5.9", "--config", config)
    assert ("--disable-radix-cache" in outcome.out) == extend
    assert ("leave out --enable-torch-compile" in outcome.err) == decode


def test_json_holds_all_of_it() -> None:
    outcome = run("launch-args", "--sglang-version", "0.5.12", "--for", "slime", "--format", "json")
    document = json.loads(outcome.out)
    assert outcome.err == ""
    assert (document["sglang"], document["native"], document["for"]) == ("0.5.12", True, "slime")
    assert document["arguments"][:2] == ["--sglang-disable-cuda-graph", "--sglang-disable-piecewise-cuda-graph"]
    assert document["environment"] == {"SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION": "0"}
    assert "--sglang-msprobe-dump-config" in document["leave_out"]
    assert all(reason["why"] for reason in document["reasons"])


ERRORS = [
    (("--sglang-version", "newest"), 2, '"newest" is no version of SGLang'),
    (("--sglang-version", "0.1.20"), 3, "SGLang 0.1.20 is older than 0.2.0"),
    (("--sglang-version", "0.0.0.dev1"), 3, "name its TREE to have its source read"),
    (("--sglang-version", "0.5.9", "."), 2, "leave out TREE and --python"),
    (("--sglang-version", "0.5.9", "--python", "x"), 2, "leave out TREE and --python"),
    ((".", "--python", "x"), 2, "leave one of them out"),
    (("--python", "no-such-python"), 2, "--python no-such-python: cannot be asked what it imports"),
    ((".",), 3, ".: holds no SGLang"),
    (("gone",), 4, "gone: no such file or folder"),
    (("--sglang-version", "0.5.9", "--config", "gone.json"), 2, "gone.json does not exist"),
]


@pytest.mark.parametrize(("options", "code", "reason"), ERRORS)
def test_bad_input_gets_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], code: int, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = run("launch-args", *options)
    assert outcome.code == code
    assert reason in the_sentence(outcome)


@pytest.mark.parametrize("version", ["0.0.0.dev1+gdce8b0606", "0.0.0.dev0", "0.1.dev12+gabc"])
def test_the_source_decides_for_a_build_whose_version_cannot_be_true(tmp_path: Path, version: str) -> None:
    lay_out(tmp_path, version)
    outcome = run("launch-args", tmp_path)
    assert (outcome.code, outcome.out) == (0, "--disable-cuda-graph --disable-radix-cache\n")
    assert f"note: SGLang of unknown version (it calls itself {version}) in " in outcome.err


@pytest.mark.parametrize(
    ("version", "said"), [("0.5.24", True), ("1.0", True), ("0.5.23", False), ("0.5.23+cu129", False)]
)
def test_a_version_that_is_not_known_yet_is_pointed_out(tmp_path: Path, version: str, said: bool) -> None:
    lay_out(tmp_path, version)
    for arguments in (("--sglang-version", version), (str(tmp_path),)):
        err = run("launch-args", *arguments).err
        assert ("it is later than 0.5.23, the newest that probe-patch knows; its flags may differ" in err) == said


def test_an_installed_version_that_is_too_old_is_refused_where_its_source_cannot_be_read(tmp_path: Path) -> None:
    lay_out(tmp_path, "0.1.20", "class (:")
    outcome = run("launch-args", tmp_path)
    assert outcome.code == 3
    assert "SGLang 0.1.20 is older than 0.2.0" in the_sentence(outcome)


def test_the_words_reach_a_server_as_they_are() -> None:
    script = 'exec "$1" -c "import sys; print(sys.argv[1:])" $("$1" -m probe_patch launch-args --sglang-version 0.5.9)'
    done = subprocess.run(["sh", "-c", script, "sh", sys.executable], capture_output=True, text=True, check=True)
    assert done.stdout == f"{FLAGS_0_5_9.split()}\n"
