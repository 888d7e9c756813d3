"""One tree refused: nothing is written to the others, and every refusal is listed."""

import json
from pathlib import Path

import pytest

from tests.cli.running import run
from tests.cli.trees import ORIGINAL, checkout, contents

BROKEN = b"x = (\n"
HALF_MARKED = ORIGINAL + b"# >>> probe-patch init\n"


@pytest.mark.parametrize("order", [("good", "bad"), ("bad", "good")], ids=", ".join)
@pytest.mark.parametrize(
    ("verb", "bad", "reason"),
    [("apply", BROKEN, "does not parse as Python"), ("revert", HALF_MARKED, "the block 'init' is not closed")],
)
def test_a_refused_tree_stops_the_others(
    tmp_path: Path, order: tuple[str, str], verb: str, bad: bytes, reason: str
) -> None:
    good = checkout(tmp_path / "good")
    refused = checkout(tmp_path / "bad", bad)
    if verb == "revert":
        run("apply", good)
    before = contents(tmp_path)
    outcome = run(verb, *(tmp_path / name for name in order))
    assert (outcome.code, outcome.out) == (3, "")
    assert str(refused) in outcome.err
    assert reason in outcome.err
    assert outcome.err.endswith("probe-patch: nothing was written\n")
    assert contents(tmp_path) == before


def test_every_refusal_is_listed(tmp_path: Path) -> None:
    checkout(tmp_path / "good")
    bad = [checkout(tmp_path / name, BROKEN) for name in ("a", "b", "c")]
    before = contents(tmp_path)
    outcome = run("apply", *(tmp_path / name for name in ("a", "good", "b", "c")))
    assert outcome.code == 3
    refusals = [line for line in outcome.err.splitlines() if "does not parse" in line]
    assert [line.split(",")[0] for line in refusals] == [f"probe-patch: {actor}" for actor in bad]
    assert contents(tmp_path) == before


def test_a_read_only_tree_stops_the_others(tmp_path: Path) -> None:
    checkout(tmp_path / "good")
    checkout(tmp_path / "protected").chmod(0o444)
    before = contents(tmp_path)
    outcome = run("apply", tmp_path / "good", tmp_path / "protected")
    assert (outcome.code, outcome.out) == (4, "")
    assert "is read-only (mode 0444); make it writable first, nothing was written" in outcome.err
    assert contents(tmp_path) == before


def test_a_tree_that_is_not_there_stops_the_others(tmp_path: Path) -> None:
    checkout(tmp_path / "good")
    before = contents(tmp_path)
    assert run("apply", tmp_path / "good", tmp_path / "gone").code == 4
    assert contents(tmp_path) == before


def test_json_says_what_the_files_still_are(tmp_path: Path) -> None:
    checkout(tmp_path / "good")
    checkout(tmp_path / "bad", BROKEN)
    outcome = run("apply", tmp_path / "good", tmp_path / "bad", "--format", "json")
    assert outcome.code == 3
    good, bad = json.loads(outcome.out)["files"]
    assert (good["state"], good["changed"], good["error"], good["phases"]) == ("unpatched", False, None, [])
    assert (bad["state"], bad["changed"], bad["as_expected"]) == ("refused", False, False)
    assert "does not parse as Python" in bad["error"]
