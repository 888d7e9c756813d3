"""Where slime's actor is, and what a slime that cannot be patched has in its place."""

from pathlib import PurePosixPath
from typing import Final

from probe_patch.patcher.targets.places import Places

_ACTOR: Final = PurePosixPath("backends/megatron_utils/actor.py")
_FSDP_ACTOR: Final = PurePosixPath("backends/fsdp_utils/actor.py")
_EARLY_ACTOR: Final = PurePosixPath("ray/ppo_actor.py")

SLIME_PLACES: Final = Places(
    packages=("slime", "miles"),
    roots=("", "src"),
    files=(_ACTOR,),
    beside={_FSDP_ACTOR: "the FSDP backend beside it is not patched: its runs do not dump"},
    instead={
        _EARLY_ACTOR: (
            "this is slime from before 2025-07-18, which probe-patch does not know; use slime v0.1.0 or later"
        ),
        _FSDP_ACTOR: f"this slime has only the FSDP backend; probe-patch patches the Megatron one ({_ACTOR})",
    },
)
