"""The debuggers that a patch can drive, and what one of them cannot do: said where it is chosen and where it runs."""

from typing import Final, Literal, TypeAlias, get_args

DebuggerName: TypeAlias = Literal["builtin", "msprobe"]

DEBUGGERS: Final[tuple[DebuggerName, ...]] = get_args(DebuggerName)
BUILTIN: Final[DebuggerName] = "builtin"

MSPROBE_PACKAGE: Final = "mindstudio-probe"
MSPROBE_OLDEST: Final = "26.0.0"
MSPROBE_CHECKED: Final = "26.2.0"

_MSPROBE_LIMITS: Final = (
    "msProbe records: the gradients may change in their last bits, its hooks stay on the model between phases, at "
    "level L1 or mix it replaces functions of torch as long as the process lives, it records one model in a process, "
    "and it writes no meta.json and no inputs.pt"
)


def limits_of(name: DebuggerName) -> tuple[str, ...]:
    """What a user of this debugger does without, compared with the built-in one; one sentence each."""
    return (_MSPROBE_LIMITS,) if name == "msprobe" else ()
