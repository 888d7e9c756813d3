"""Where SGLang's ModelRunner is, and what an SGLang that cannot be patched has in its place."""

from pathlib import PurePosixPath
from typing import Final

from probe_patch.patcher.targets.places import Places

MODEL_RUNNER: Final = PurePosixPath("srt/model_executor/model_runner.py")
_UNTIL_0_2_6: Final = PurePosixPath("srt/managers/controller/model_runner.py")
_IN_0_1: Final = PurePosixPath("srt/managers/router/model_runner.py")

SGLANG_PLACES: Final = Places(
    packages=("sglang",),
    roots=("", "python"),
    files=(MODEL_RUNNER, _UNTIL_0_2_6),
    beside={},
    instead={_IN_0_1: "this is SGLang from before 0.2.0, which probe-patch does not know; use SGLang 0.2.0 or later"},
)
