"""``check`` in every format and with every expectation, and ``status``: they tell, and write nothing."""

import json
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

from probe_patch import __version__
from probe_patch.patcher.request import Request
from probe_patch.patcher.rewrite import apply
from tests.cli.running import run
from tests.cli.trees import ORIGINAL, checkout, contents

STATES = {
    "unpatched": ORIGINAL,
    "patched": apply(ORIGINAL, Request(), "actor.py").source,
    "ref": apply(ORIGINAL, Request(("ref",)), "actor.py").source,
    "msprobe": apply(ORIGINAL, Request(debugger="msprobe"), "actor.py").source,
    "older": apply(ORIGINAL, Request(version="0.0.1"), "actor.py").source,
    "edited": apply(ORIGINAL, Request(), "actor.py").source.replace(b"(self, 'actor')", b"(self, 'ref')"),
    "broken": b"x = (\n",
    "vendor": ORIGINAL + b"import msprobe\n",
    "quoted": ORIGINAL + b'X = """\n# >>> probe-patch init\n# <<< probe-patch init\n"""\n',
    "damaged": ORIGINAL + b"# >>> probe-patch prelude\n# <<< probe-patch prelude\n_probe_patch = 1\n",
}

CHECKS = [
    ("patched", (), 0, ""),
    ("patched", ("--phases", "actor,old,ref"), 0, ""),
    ("patched", ("--phases", "ref"), 1, "is patched for phases ref,old,actor, not ref"),
    ("patched", ("--clean",), 1, "is patched; run probe-patch revert"),
    ("patched", ("--can-apply",), 1, "is patched; run probe-patch revert"),
    ("ref", (), 0, ""),
    ("ref", ("--phases", "ref"), 0, ""),
    ("ref", ("--phases", "ref,old"), 1, "is patched for phases ref, not ref,old"),
    ("patched", ("--debugger", "builtin"), 0, ""),
    ("patched", ("--debugger", "msprobe"), 1, "drives the debugger builtin, not msprobe"),
    ("msprobe", (), 0, ""),
    ("msprobe", ("--phases", "ref,old,actor"), 0, ""),
    ("msprobe", ("--debugger", "msprobe"), 0, ""),
    ("msprobe", ("--debugger", "builtin"), 1, "drives the debugger msprobe, not builtin"),
    ("unpatched", ("--debugger", "msprobe"), 1, "is not patched; run probe-patch apply"),
    ("unpatched", ("--can-apply", "--debugger", "msprobe"), 0, "msProbe records: the gradients may change"),
    ("unpatched", (), 1, "is not patched; run probe-patch apply"),
    ("unpatched", ("--phases", "ref"), 1, "is not patched; run probe-patch apply"),
    ("unpatched", ("--clean",), 0, ""),
    ("unpatched", ("--can-apply",), 0, ""),
    ("unpatched", ("--can-apply", "--phases", "old"), 0, ""),
    ("older", (), 1, f"was patched by probe-patch 0.0.1, this is {__version__}; run probe-patch apply"),
    ("older", ("--clean",), 1, "is patched; run probe-patch revert"),
    ("edited", (), 1, "its blocks or the code they stand in were changed since it was patched"),
    ("broken", (), 3, "does not parse as Python"),
    ("vendor", (), 3, "already carries msProbe's hand-made edits"),
    ("vendor", ("--can-apply",), 3, "already carries msProbe's hand-made edits"),
    ("quoted", (), 3, "a probe-patch marker stands in a string"),
    ("damaged", (), 3, "left over from a probe-patch block"),
    ("broken", ("--can-apply",), 3, "does not parse as Python"),
    ("broken", ("--clean",), 0, ""),
]


@pytest.mark.parametrize(("state", "options", "code", "reason"), CHECKS)
def test_check(tmp_path: Path, state: str, options: tuple[str, ...], code: int, reason: str) -> None:
    checkout(tmp_path, STATES[state])
    before = contents(tmp_path)
    outcome = run("check", tmp_path, *options)
    assert outcome.code == code
    assert reason in outcome.err
    assert bool(outcome.out) == (code < 3)
    assert contents(tmp_path) == before


def test_can_apply_says_what_to_know_before_applying(tmp_path: Path) -> None:
    checkout(tmp_path)
    assert "phase ref runs only with a reference model" in run("check", tmp_path, "--can-apply").err
    assert "phase ref" not in run("check", tmp_path, "--can-apply", "--phases", "actor").err


STATUSES = [
    ("unpatched", "unpatched"),
    ("patched", f"patched for ref, old, actor by probe-patch {__version__}"),
    ("ref", f"patched for ref by probe-patch {__version__}"),
    ("msprobe", f"patched for ref, old, actor by probe-patch {__version__} driving msprobe"),
    ("older", "patched otherwise than expected for ref, old, actor by probe-patch 0.0.1"),
    ("edited", f"patched otherwise than expected for ref, old, actor by probe-patch {__version__}"),
    ("broken", "unpatched"),
]


@pytest.mark.parametrize(("state", "sentence"), STATUSES)
def test_status(tmp_path: Path, state: str, sentence: str) -> None:
    actor = checkout(tmp_path, STATES[state])
    before = contents(tmp_path)
    outcome = run("status", tmp_path)
    assert (outcome.code, outcome.out, outcome.err) == (0, f"{actor}: {sentence}\n", "")
    assert contents(tmp_path) == before


def test_status_as_json(tmp_path: Path) -> None:
    states = ("older", "msprobe", "unpatched")
    for state in states:
        checkout(tmp_path / state, STATES[state])
    printed = run("status", *(tmp_path / state for state in states), "--format", "json").out
    older, msprobe, unpatched = json.loads(printed)["files"]
    assert (older["state"], older["patched_by"], older["phases"]) == ("outdated", "0.0.1", ["ref", "old", "actor"])
    assert (unpatched["state"], unpatched["patched_by"], unpatched["phases"]) == ("unpatched", None, [])
    assert [file["debugger"] for file in (older, msprobe, unpatched)] == ["builtin", "msprobe", None]


def test_the_worst_file_decides_the_exit_code(tmp_path: Path) -> None:
    for state in ("patched", "unpatched", "broken"):
        checkout(tmp_path / state, STATES[state])
    assert run("check", tmp_path / "patched").code == 0
    assert run("check", tmp_path / "patched", tmp_path / "unpatched").code == 1
    assert run("check", "--can-apply", tmp_path / "unpatched", tmp_path / "patched", tmp_path / "broken").code == 3
    (tmp_path / "unreadable.py").symlink_to("/proc/self/mem")
    assert run("check", "--can-apply", tmp_path / "unreadable.py", tmp_path / "broken").code == 4


@pytest.mark.parametrize("output", ["json", "sarif", "github"])
@pytest.mark.parametrize(("state", "code"), [("patched", 1), ("unpatched", 0), ("broken", 3)])
def test_every_format_has_the_same_exit_code(tmp_path: Path, output: str, state: str, code: int) -> None:
    checkout(tmp_path, STATES[state])
    outcome = run("check", tmp_path, "--can-apply", "--format", output)
    assert (outcome.code, outcome.err) == (code, "")


def test_json_of_check(tmp_path: Path) -> None:
    checkout(tmp_path, STATES["ref"])
    (file,) = json.loads(run("check", tmp_path, "--phases", "old", "--format", "json").out)["files"]
    assert (file["state"], file["as_expected"], file["changed"]) == ("outdated", False, False)
    assert file["notes"] == ["is patched for phases ref, not old"]


def test_sarif_has_the_shape_that_its_readers_require(tmp_path: Path) -> None:
    """SARIF 2.1.0: version and runs; tool.driver.name; each ruleId among the rules; messages with text; URIs."""
    folder = tmp_path / "a b#ü%"
    unpatched, broken = checkout(folder / "1", ORIGINAL), checkout(folder / "2", STATES["broken"])
    checkout(folder / "3", STATES["patched"])
    broken.write_bytes(STATES["patched"] + b"x = (\n")
    log = json.loads(run("check", folder / "1", folder / "2", folder / "3", "--format", "sarif").out)
    assert log["version"] == "2.1.0"
    assert urlparse(log["$schema"]).scheme == "https"
    (sarif_run,) = log["runs"]
    driver = sarif_run["tool"]["driver"]
    assert (driver["name"], driver["version"]) == ("probe-patch", __version__)
    rules = [rule["id"] for rule in driver["rules"]]
    assert len(rules) == len(set(rules))
    assert all(rule["shortDescription"]["text"] for rule in driver["rules"])
    found = []
    for result in sarif_run["results"]:
        assert result["ruleId"] in rules
        assert result["level"] in ("none", "note", "warning", "error")
        (location,) = result["locations"]
        physical = location["physicalLocation"]
        assert physical["region"]["startLine"] >= 1
        uri = urlparse(physical["artifactLocation"]["uri"])
        assert (uri.scheme, uri.fragment, uri.query) == ("file", "", "")
        found.append((result["ruleId"], unquote(uri.path), result["message"]["text"]))
    (first, second) = found
    assert first[:2] == ("unexpected-state", str(unpatched))
    assert first[2] == f"{unpatched}: unpatched; is not patched; run probe-patch apply"
    assert second[:2] == ("refused", str(broken))
    assert "does not parse as Python" in second[2]


def test_sarif_without_findings_is_still_a_log(tmp_path: Path) -> None:
    checkout(tmp_path, STATES["patched"])
    (sarif_run,) = json.loads(run("check", tmp_path, "--format", "sarif").out)["runs"]
    assert sarif_run["results"] == []


def test_github_gets_one_escaped_line_per_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    checkout(tmp_path / "50%,a:b\nc")
    checkout(tmp_path / "fine", STATES["patched"])
    outcome = run("check", "50%,a:b\nc", "fine", "--format", "github")
    path = "50%25,a:b%0Ac/slime/backends/megatron_utils/actor.py"
    assert outcome.out == (
        f"::error file={path.replace(',', '%2C').replace(':', '%3A')},line=1,title=probe-patch::"
        f"{path}: unpatched; is not patched; run probe-patch apply\n"
    )
