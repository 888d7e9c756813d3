"""Options that several commands share."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from probe_patch.debuggers import BUILTIN, DEBUGGERS, DebuggerName
from probe_patch.dump_format import Phase
from probe_patch.errors import WrongUsage
from probe_patch.patcher.request import ALL_PHASES, parse_debugger, parse_phases

Function = TypeVar("Function", bound=Callable[..., Any])


class NamedPath(click.Path):
    """A path that is not empty: an empty word comes from a variable that is not set, and means no folder at all."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            raise WrongUsage(f"{_name_of(param)} is empty (a variable that is not set?); name one, or leave it out")
        return super().convert(value, param, ctx)


def _name_of(param: click.Parameter | None) -> str:
    if param is None:
        return "the path"
    return param.opts[0] if isinstance(param, click.Option) else param.human_readable_name.strip("[].")


PATH: Final = NamedPath()

trees_argument = click.argument("trees", metavar="[TREE]...", nargs=-1, type=PATH)

python_option = click.option(
    "--python", metavar="EXE", help="Ask this interpreter, instead of this one, which slime and SGLang it would import."
)


def _phases(_context: click.Context, _parameter: click.Parameter, value: str | None) -> tuple[Phase, ...] | None:
    return None if value is None else parse_phases(value)


phases_option = click.option(
    "--phases",
    metavar="LIST",
    callback=_phases,
    help=f"Which of slime's phases to dump: any of {','.join(ALL_PHASES)}. "
    "Not given, apply takes all, and check those that are written down.",
)


def _debugger(_context: click.Context, _parameter: click.Parameter, value: str | None) -> DebuggerName | None:
    return None if value is None else parse_debugger(value)


debugger_option = click.option(
    "--debugger",
    metavar="NAME",
    callback=_debugger,
    help=f"Which debugger records: {' or '.join(DEBUGGERS)}. Not given, apply takes {BUILTIN}, and "
    "check what is written down.",
)


def format_option(formats: Sequence[str]) -> Callable[[Function], Function]:
    return click.option(
        "--format", "output", type=click.Choice(list(formats)), default="text", show_default=True, help="How to print."
    )
