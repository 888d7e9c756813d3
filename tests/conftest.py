"""Options of the test suite, and what its tests share."""

import os
from pathlib import Path

import pytest

from tests.harness.sglang_releases import MATRIX_OPTION
from tests.harness.slime_clone import CLONE_OPTION
from tests.interpreted import OPTION, Replace, is_left_out, replacing, why_not_to_test


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        CLONE_OPTION,
        type=Path,
        default=None,
        metavar="PATH",
        help="a full clone of THUDM/slime: run the tests on every version of its Megatron actor",
    )
    parser.addoption(
        MATRIX_OPTION,
        action="store_true",
        help="run the tests on every release of SGLang from 0.2.0 to 0.5.23, not on a spread of 20",
    )
    parser.addoption(
        OPTION,
        action="store_true",
        help="test the modules of the capture as plain Python; see `make test-interpreted`",
    )


def pytest_configure(config: pytest.Config) -> None:
    wrong = why_not_to_test(config.getoption(OPTION), bool(os.environ.get("CI")))
    if wrong is not None:
        raise pytest.UsageError(wrong)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if config.getoption(OPTION) and is_left_out(collection_path) else None


@pytest.fixture
def replace(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Replace:
    """Replaces what is ours; where that is compiled, the test is skipped and ``make test-interpreted`` runs it."""
    return replacing(monkeypatch, request.path)
