"""SGLang as slime's docker images carry it: slime patches model_runner.py too, and that must not matter.

Opt-in: ``--slime-clone PATH`` names the clone that the patches are read from.
"""

import subprocess
from pathlib import Path

import pytest

from tests.cli.running import run
from tests.harness.sglang_releases import release
from tests.harness.slime_clone import CLONE_OPTION, read_blob
from tests.patcher.rounds import check_round

# The SGLang that an image is built on, and the git blob of slime's patch of it.
PATCHES = [
    ("0.5.2", "f697510b"),
    ("0.5.5.post1", "5e0e7215"),
    ("0.5.6", "78bf161b"),
    ("0.5.7", "8c2b46fb"),
    ("0.5.9", "e9145702"),
    ("0.5.12.post1", "861f2524"),
    ("0.5.15.post1", "96758562"),
]


@pytest.mark.parametrize(("version", "blob"), PATCHES)
def test_slimes_own_patch(tmp_path: Path, pytestconfig: pytest.Config, version: str, blob: str) -> None:
    clone = pytestconfig.getoption(CLONE_OPTION)
    if clone is None:
        pytest.skip(f"opt-in: {CLONE_OPTION} PATH names a clone of THUDM/slime")
    checkout = tmp_path / "sglang"
    image = release(version)
    file = image.lay_out(checkout / "python")
    before = file.read_bytes()
    apply_slimes_patch(checkout, read_blob(clone, blob), file)
    assert file.read_bytes() != before
    if image.native:
        assert run("apply", checkout).code == 3
    else:
        check_round(checkout, file, [()])


def apply_slimes_patch(checkout: Path, patch: bytes, file: Path) -> None:
    """As the image's build does it, for the one file."""
    include = f"--include={file.relative_to(checkout)}"
    subprocess.run(["git", "apply", "--unsafe-paths", include, "-"], cwd=checkout, input=patch, check=True)
