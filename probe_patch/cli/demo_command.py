"""``demo``: the whole loop on a tiny model."""

import contextlib
import importlib.util
import shutil
import tempfile
from collections.abc import Generator, Iterable
from pathlib import Path

import click
from rich.console import Console
from rich.status import Status
from rich.table import Table

from probe_patch.demo.dumps import DumpRow, Numbers
from probe_patch.demo.fixture import ERAS
from probe_patch.demo.story import Began, Ended, Event, Evidence, Places, Progress, tell
from probe_patch.errors import SystemFailed

_NEEDED = {"torch": "torch", "ray": "ray", "megatron": "megatron-core"}


@click.command()
@click.option("--era", type=click.Choice(ERAS), default="E15", show_default=True, help="Which slime to play.")
@click.option("--keep", is_flag=True, help="Keep the tree and the logs too, not only the dumps.")
def demo(era: str, keep: bool) -> None:
    """Patch, run and undo a small slime under Ray and megatron-core, on this machine's CPU, in about a minute.

    It trains twice without the dump and once with it, shows that all three compute the same numbers to the bit,
    shows what was dumped, and takes the patch out again.
    """
    _require_what_runs()
    places = Places(Path(tempfile.mkdtemp(prefix="probe-patch-demo-")))
    finished = False
    try:
        _show(tell(era, places))
        finished = True
    finally:
        if not keep:
            _tidy(places, keep_dump=finished)
    _say_where(places, keep)


def _require_what_runs() -> None:
    missing = [package for module, package in _NEEDED.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise SystemFailed(
            f"the demo trains for real and needs {', '.join(missing)}: install probe-patch with its extra [demo]"
        )


def _show(events: Generator[Event, None, None]) -> None:
    """Stages go to stderr as they happen, what was dumped to stdout."""
    stages = Console(stderr=True, highlight=False)
    title = ""
    with contextlib.closing(events), stages.status("") as spinner:
        for event in events:
            if isinstance(event, Began):
                title = event.title
                spinner.update(title)
            elif isinstance(event, Progress):
                spinner.update(f"{title}: {event.detail}" if event.detail else title)
            elif isinstance(event, Ended):
                stages.print(f"[green]✓[/] {title} [dim]({event.seconds:.1f} s)[/]\n  {event.outcome}", soft_wrap=True)
            else:
                _show_evidence(event, spinner)


def _show_evidence(evidence: Evidence, spinner: Status) -> None:
    spinner.stop()
    output = Console(highlight=False)
    output.print(_dump_table(evidence.rows))
    output.print(_number_table(evidence.module, evidence.numbers))
    spinner.start()


def _dump_table(rows: Iterable[DumpRow]) -> Table:
    table = Table(title="what DUMP_ON=1 wrote")
    table.add_column("phase")
    for name in ("step", "rank", "modules", "tensors", "bytes"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(row.phase, *(f"{n:,}" for n in (row.step, row.rank, row.modules, row.tensors, row.size)))
    return table


def _number_table(module: str, numbers: Iterable[Numbers]) -> Table:
    table = Table(title=f"{module}, first output, step 0, rank 0")
    table.add_column("phase")
    for name in ("max", "min", "mean", "L2 norm"):
        table.add_column(name, justify="right")
    for row in numbers:
        table.add_row(row.phase, *(f"{value:.7g}" for value in (row.max, row.min, row.mean, row.norm)))
    return table


def _tidy(places: Places, keep_dump: bool) -> None:
    if not keep_dump:
        shutil.rmtree(places.scratch, ignore_errors=True)
        return
    for path in places.scratch.iterdir():
        if path == places.dump:
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()


def _say_where(places: Places, keep: bool) -> None:
    click.echo(f"dumps: {places.dump}")
    if keep:
        click.echo(f"tree, results and logs: {places.scratch}")
    click.echo("next:  probe-patch apply --diff PATH/TO/slime   (what it would change in yours)")
