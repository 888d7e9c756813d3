"""One set of weights for all real runs."""

import pytest

from tests.real_sglang.report import Checkpoints
from tests.real_sglang.setups import write_checkpoints


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Checkpoints:
    return write_checkpoints(tmp_path_factory.mktemp("checkpoints"))
