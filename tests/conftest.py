"""Options of the test suite."""

from pathlib import Path

import pytest

from tests.harness.slime_clone import CLONE_OPTION


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        CLONE_OPTION,
        type=Path,
        default=None,
        metavar="PATH",
        help="a full clone of THUDM/slime: run the tests on every version of its Megatron actor",
    )
