"""The whole round, through the command line, on actors nobody wrote for these tests.

Always: the actor of the published ``miles-rl`` wheel. With ``--slime-clone PATH``: all 152 versions of slime's actor
since it became ``megatron_utils/actor.py``.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from probe_patch.cli import main
from probe_patch.dump_format import Phase
from probe_patch.patcher.rewrite import strip
from tests.harness.eras import ActorVersion, actor_versions
from tests.harness.slime_clone import CLONE_OPTION, read_blob
from tests.harness.wheels import MILES, MILES_ACTOR, read_from_wheel
from tests.patcher.test_rewrite import SUBSETS


def probe_patch(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def check_round(tree: Path, actor: Path, source: bytes, subsets: Sequence[tuple[Phase, ...]]) -> None:
    """apply, compile, strip, apply again, check and revert, for each subset of phases, on a tree with one actor."""
    actor.parent.mkdir(parents=True)
    actor.write_bytes(source)
    assert probe_patch("check", "--can-apply", str(tree)).exit_code == 0
    for subset in subsets:
        phases = ",".join(subset)
        assert probe_patch("apply", "--phases", phases, str(tree)).exit_code == 0
        patched = actor.read_bytes()
        compile(patched, str(actor), "exec")
        assert patched != source
        assert strip(patched, "actor.py") == source

        again = probe_patch("apply", "--phases", phases, str(tree))
        assert (again.exit_code, actor.read_bytes()) == (0, patched)
        assert "already patched" in again.stdout
        assert probe_patch("check", "--phases", phases, str(tree)).exit_code == 0
        assert probe_patch("check", "--clean", str(tree)).exit_code == 1

        assert probe_patch("revert", str(tree)).exit_code == 0
        assert actor.read_bytes() == source
        assert probe_patch("check", str(tree)).exit_code == 1


def test_miles(tmp_path: Path) -> None:
    check_round(tmp_path, tmp_path / MILES_ACTOR, read_from_wheel(MILES, MILES_ACTOR), SUBSETS)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One skipped test, not 152, where there is no clone."""
    if "version" in metafunc.fixturenames:
        has_clone = metafunc.config.getoption(CLONE_OPTION) is not None
        metafunc.parametrize(
            "version",
            actor_versions() if has_clone else [None],
            ids=lambda version: version.id if version else "no-clone",
        )


def test_slime(tmp_path: Path, pytestconfig: pytest.Config, version: ActorVersion | None) -> None:
    if version is None:
        pytest.skip(f"opt-in: {CLONE_OPTION} PATH names a clone of THUDM/slime")
    actor = tmp_path / "slime/backends/megatron_utils/actor.py"
    check_round(tmp_path, actor, read_blob(pytestconfig.getoption(CLONE_OPTION), version.blob), SUBSETS)
