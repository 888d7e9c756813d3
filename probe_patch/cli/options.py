"""Options that several commands share."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from probe_patch.dump_format import Phase
from probe_patch.patcher.request import ALL_PHASES, parse_phases

Function = TypeVar("Function", bound=Callable[..., Any])

trees_argument = click.argument("trees", metavar="[TREE]...", nargs=-1, type=click.Path(path_type=Path))

python_option = click.option(
    "--python", metavar="EXE", help="Ask this interpreter, instead of this one, which slime and SGLang it would import."
)


def _phases(_context: click.Context, _parameter: click.Parameter, value: str | None) -> tuple[Phase, ...] | None:
    return None if value is None else parse_phases(value)


phases_option = click.option(
    "--phases",
    metavar="LIST",
    callback=_phases,
    help=f"Which of slime's phases to dump: any of {','.join(ALL_PHASES)} (all, where not given).",
)


def format_option(formats: Sequence[str]) -> Callable[[Function], Function]:
    return click.option(
        "--format", "output", type=click.Choice(list(formats)), default="text", show_default=True, help="How to print."
    )
