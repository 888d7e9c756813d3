"""Reading a patched file back: whatever stands elsewhere than it must is noticed, whoever put it there."""

import ast

import pytest

from probe_patch.errors import Refused
from probe_patch.patcher.request import Request
from probe_patch.patcher.rewrite import apply
from probe_patch.patcher.targets.sglang.readback import read_back
from tests.harness.model_runner import FILE_NAME
from tests.patcher.sglang.small_runner import SMALL_RUNNER

PATCHED = apply(SMALL_RUNNER.encode(), Request(), FILE_NAME).source.decode()

WRONG = [
    pytest.param("def _probe_patch_init(", "def _probe_patch_other(", "the prelude is not at the top", id="no prelude"),
    pytest.param("    @_probe_patch_init\n", "", "__init__ is not decorated exactly once", id="init not"),
    pytest.param("    @_probe_patch_forward\n", "", "forward is not decorated exactly once", id="forward not"),
    pytest.param(
        "    @_probe_patch_forward\n",
        "    @_probe_patch_forward\n    @timer\n",
        "forward is not decorated",
        id="outermost",
    ),
    pytest.param(
        "    def load_model",
        "    @_probe_patch_forward\n    def load_model",
        "forward is not decorated",
        id="another too",
    ),
    pytest.param("class ModelRunner:", "class Runner:", "__init__ is not decorated exactly once", id="another class"),
]


def test_a_patched_file_reads_back() -> None:
    read_back(ast.parse(PATCHED), Request(()), FILE_NAME)


@pytest.mark.parametrize(("right", "wrong", "reason"), WRONG)
def test_what_stands_elsewhere_is_noticed(right: str, wrong: str, reason: str) -> None:
    assert PATCHED.count(right) == 1
    with pytest.raises(Refused, match=rf"^{FILE_NAME}: {reason}.* this is a bug of probe-patch"):
        read_back(ast.parse(PATCHED.replace(right, wrong)), Request(()), FILE_NAME)
