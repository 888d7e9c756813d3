"""The kernels compile for every NVIDIA architecture that matters, to what they are meant to."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ARCHITECTURES = (80, 90, 100)


@pytest.fixture(scope="module")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """By kernel, architecture and the type of sizes. The interpreter's kernels cannot be compiled, hence a process."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment |= {"TRITON_CACHE_DIR": str(tmp_path_factory.mktemp("triton"))}
    command = [sys.executable, "-m", "tests.kernels.checksums.compiling", *map(str, ARCHITECTURES)]
    folder = Path(__file__).parents[3]
    done = subprocess.run(command, env=environment, cwd=folder, stdout=subprocess.PIPE, check=True, text=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("whole", ["i32", "i64"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_exclusive_or_reads_16_bytes_at_a_time(assembly: dict[str, str], architecture: int, whole: str) -> None:
    ptx = assembly[f"xor64_kernel {architecture} {whole}"]
    assert "ld.global.v2.b64" in ptx
    assert "atom.global.gpu.acq_rel.xor.b64" in ptx
    assert ".local" not in ptx


@pytest.mark.parametrize("whole", ["i32", "i64"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_crc32_needs_no_local_memory(assembly: dict[str, str], architecture: int, whole: str) -> None:
    ptx = assembly[f"crc32_kernel {architecture} {whole}"]
    assert "atom.global.gpu.acq_rel.xor.b32" in ptx
    assert ".local" not in ptx
