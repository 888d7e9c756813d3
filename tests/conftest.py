"""Options of the test suite."""

from pathlib import Path

import pytest

from tests.harness.sglang_releases import MATRIX_OPTION
from tests.harness.slime_clone import CLONE_OPTION


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
