"""The whole round, through the command line, on releases of SGLang: a spread, or all with ``--sglang-matrix``."""

import json
from pathlib import Path

from probe_patch.launch.native import native_sentence
from tests.cli.running import run, the_sentence
from tests.cli.trees import checkout, contents
from tests.harness.sglang_releases import SPREAD, Release, releases
from tests.patcher.rounds import check_round


def test_the_spread_is_twenty_of_all_the_releases() -> None:
    everything = releases(everything=True)
    assert len(everything) == 129
    assert (everything[0].version, everything[-1].version) == ("0.2.0", "0.5.23")
    assert len([release for release in everything if release.native]) == 16
    assert len(SPREAD) == 20
    assert {release.version for release in releases(everything=False)} == SPREAD


def test_a_release_is_patched_and_comes_back_to_the_byte(tmp_path: Path, patched_release: Release) -> None:
    check_round(tmp_path, patched_release.lay_out(tmp_path), [()])


def test_a_native_release_is_refused_with_its_flags(tmp_path: Path, native_release: Release) -> None:
    file = native_release.lay_out(tmp_path)
    before = contents(tmp_path)
    sentence = native_sentence(native_release.version)
    for command in (("apply",), ("apply", "--diff"), ("check", "--can-apply")):
        outcome = run(*command, tmp_path)
        assert outcome.code == 3
        assert the_sentence(outcome) == f"{file}: {sentence}"
    for command in (("check",), ("check", "--clean"), ("revert",)):
        assert run(*command, tmp_path).code == 0
    (status,) = json.loads(run("status", tmp_path, "--format", "json").out)["files"]
    assert (status["state"], status["side"], status["notes"]) == ("native", "rollout", [sentence])
    assert contents(tmp_path) == before


def test_a_native_release_beside_slime_is_left_as_it_is(tmp_path: Path, native_release: Release) -> None:
    file = native_release.lay_out(tmp_path)
    actor = checkout(tmp_path)
    before = contents(tmp_path)
    sentence = native_sentence(native_release.version)
    for command in ("apply", "check"):
        outcome = run(command, tmp_path)
        assert outcome.code == 0
        assert f"{file}: carries its own hook; needs no patch\n" in outcome.out
        assert f"note: {file}: {sentence}\n" in outcome.err
    assert b"probe-patch" in actor.read_bytes()
    assert run("revert", tmp_path).code == 0
    assert contents(tmp_path) == before
