"""The whole round, through the command line, on actors nobody wrote for these tests.

Always: the actor of the published ``miles-rl`` wheel. With ``--slime-clone PATH``: all 152 versions of slime's actor
since it became ``megatron_utils/actor.py``.
"""

from pathlib import Path

import pytest

from tests.harness.eras import ActorVersion, actor_versions
from tests.harness.slime_clone import CLONE_OPTION, read_blob
from tests.harness.wheels import MILES, MILES_ACTOR, read_from_wheel
from tests.patcher.rounds import check_round
from tests.patcher.test_rewrite import SUBSETS

EVERY_SUBSET = [("--phases", ",".join(subset)) for subset in SUBSETS]


def check_actor(tree: Path, actor: Path, source: bytes) -> None:
    actor.parent.mkdir(parents=True)
    actor.write_bytes(source)
    check_round(tree, actor, EVERY_SUBSET)


def test_miles(tmp_path: Path) -> None:
    check_actor(tmp_path, tmp_path / MILES_ACTOR, read_from_wheel(MILES, MILES_ACTOR))


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
    check_actor(tmp_path, actor, read_blob(pytestconfig.getoption(CLONE_OPTION), version.blob))
