"""``apply``, ``revert``, ``check`` and ``status``."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from probe_patch.cli.diff import print_diff
from probe_patch.cli.dumped_modes import dumped_modes
from probe_patch.cli.named_config import checked_config_of
from probe_patch.cli.options import PATH, debugger_option, format_option, phases_option, python_option, trees_argument
from probe_patch.cli.report import CHECK_FORMATS, FORMATS, Report, print_report, say_notes
from probe_patch.debuggers import BUILTIN, DebuggerName
from probe_patch.dump_format import Phase
from probe_patch.errors import WrongUsage
from probe_patch.patcher import verbs
from probe_patch.patcher.discovery import find_targets
from probe_patch.patcher.request import ALL_PHASES, Request
from probe_patch.patcher.result import Result
from probe_patch.patcher.verbs import Expectation


@click.command()
@trees_argument
@phases_option
@click.option(
    "--config",
    metavar="FILE",
    type=PATH,
    help="The config.json to use when the environment names none; its absolute path goes into the patch.",
)
@debugger_option
@click.option("--diff", is_flag=True, help="Only show what would change, as a diff; write nothing.")
@python_option
@format_option(FORMATS)
def apply(
    trees: tuple[Path, ...],
    phases: tuple[Phase, ...] | None,
    config: Path | None,
    debugger: DebuggerName | None,
    diff: bool,
    python: str | None,
    output: str,
) -> None:
    """Patch slime's actor and SGLang's ModelRunner, so that DUMP_ON=1 dumps what they run.

    TREE is a checkout, a site-packages folder, a package folder or the file itself; without one: the current
    directory's slime and SGLang, and those that this Python (or --python) would import. A second apply changes
    nothing; other phases, or another debugger, replace the ones before. Every file is patched, or none. SGLang
    0.5.11 and later dumps by itself and is left as it is.
    """
    targets = find_targets(trees, python)
    request = Request(phases or ALL_PHASES, debugger=debugger or BUILTIN)
    if config is None:
        results = verbs.apply(targets, request, dry_run=diff)
    else:
        modes = dumped_modes(checked_config_of(request.debugger, config).rollout)
        results = verbs.apply(targets, replace(request, config=str(config.absolute())), diff, modes)
    _finish("apply", results, output, diff)


@click.command()
@trees_argument
@click.option("--diff", is_flag=True, help="Only show what would change, as a diff; write nothing.")
@python_option
@format_option(FORMATS)
def revert(trees: tuple[Path, ...], diff: bool, python: str | None, output: str) -> None:
    """Take the patch out again, byte for byte; edits made elsewhere in the file stay."""
    _finish("revert", verbs.revert(find_targets(trees, python), dry_run=diff), output, diff)


@click.command()
@trees_argument
@phases_option
@debugger_option
@click.option("--clean", "expectation", flag_value="clean", help="Expect no patch.")
@click.option(
    "--can-apply", "expectation", flag_value="can-apply", help="Expect no patch, and every anchor in its place."
)
@python_option
@format_option(CHECK_FORMATS)
def check(
    trees: tuple[Path, ...],
    phases: tuple[Phase, ...] | None,
    debugger: DebuggerName | None,
    expectation: str | None,
    python: str | None,
    output: str,
) -> None:
    """Say whether the files are patched as this version would patch them; exit 1 if not."""
    expected = Expectation(expectation or "patched")
    for option, value in (("--phases", phases), ("--debugger", debugger)):
        if value is not None and expected is Expectation.CLEAN:
            raise WrongUsage(f"{option} has no meaning with --clean; leave one of them out")
    _finish("check", verbs.check(find_targets(trees, python), expected, phases, debugger), output, diff=False)


@click.command()
@trees_argument
@python_option
@format_option(FORMATS)
def status(trees: tuple[Path, ...], python: str | None, output: str) -> None:
    """Show what is there: unpatched or patched, by which version, for which phases or side, and which debugger."""
    _finish("status", verbs.status(find_targets(trees, python)), output, diff=False)


def _finish(verb: str, results: Sequence[Result], output: str, diff: bool) -> None:
    report = Report(verb, tuple(results), dry_run=diff)
    if diff and output == "text":
        say_notes(report)
        print_diff(results)
    else:
        print_report(report, output)
    errors = [result.error for result in results if result.error is not None]
    code = max((error.exit_code for error in errors), default=0)
    if not code and not all(result.as_expected for result in results):
        code = 1
    click.get_current_context().exit(code)
