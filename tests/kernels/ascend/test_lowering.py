"""The kernels for statistics and checksums are such that triton-ascend compiles them for an NPU, as far as that goes
without CANN: to linalg.

Run where ``make venv-ascend`` has been.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import needs

REPOSITORY = Path(__file__).parents[3]
TRITON_ASCEND = REPOSITORY / ".venv-ascend"

LAYOUTS = ("dense", "shared", "strided", "merged")


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What came of each kernel: nothing, or what went wrong."""
    needs((TRITON_ASCEND / "triton").is_dir(), "triton-ascend is not installed: run `make venv-ascend`")
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join((str(REPOSITORY), str(TRITON_ASCEND))),
        "TRITON_CACHE_DIR": str(tmp_path_factory.mktemp("triton")),
    }
    command = [sys.executable, "-m", "tests.kernels.ascend.lowering"]
    done = subprocess.run(command, env=environment, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


def test_all_kernels_are_lowered(outcomes: dict[str, str]) -> None:
    assert {"crc32_kernel", "xor64_kernel", *(f"float32 {layout}" for layout in LAYOUTS)} <= outcomes.keys()
    assert {name: failure for name, failure in outcomes.items() if failure} == {}
