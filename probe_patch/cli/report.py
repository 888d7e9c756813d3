"""What the patching commands print, in every format."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import click

from probe_patch import __version__
from probe_patch.cli.errors import say_error, say_note
from probe_patch.cli.output import echo
from probe_patch.debuggers import BUILTIN
from probe_patch.patcher.result import Result, State

FORMATS = ("text", "json")
CHECK_FORMATS = ("text", "json", "sarif", "github")

_STATE_TEXT = {
    State.UNPATCHED: "unpatched",
    State.PATCHED: "patched",
    State.OUTDATED: "patched otherwise than expected",
    State.NATIVE: "carries its own hook; needs no patch",
    State.REFUSED: "refused",
}


@dataclass(frozen=True)
class Report:
    """The results of one command."""

    verb: str
    results: tuple[Result, ...]
    dry_run: bool


def print_report(report: Report, output: str) -> None:
    printers: dict[str, Callable[[Report], None]] = {
        "text": _print_text,
        "json": _print_json,
        "sarif": _print_sarif,
        "github": _print_github,
    }
    printers[output](report)


def say_notes(report: Report) -> None:
    """Notes and refusals, on stderr."""
    for result in report.results:
        for note in result.notes:
            say_note(f"{result.target.shown}: {note}")
        if result.error is not None:
            say_error(result.error)
    if _nothing_written(report):
        click.echo("probe-patch: nothing was written", err=True)


def _nothing_written(report: Report) -> bool:
    return report.verb in ("apply", "revert") and any(result.error for result in report.results)


def _print_text(report: Report) -> None:
    say_notes(report)
    for result in report.results:
        if result.error is None and not _nothing_written(report):
            echo(f"{result.target.shown}: {_outcome(report, result)}")


def _outcome(report: Report, result: Result) -> str:
    words = [_STATE_TEXT[result.state]]
    if result.state is State.NATIVE:
        return words[0]
    if report.verb in ("apply", "revert"):
        if not result.changed:
            words = [f"already {words[0]}"]
        elif report.verb == "revert":
            words = ["reverted"]
    if result.request is not None and result.state is not State.UNPATCHED:
        words.append(f"for {', '.join(result.request.phases) or result.side}")
        if report.verb in ("status", "check"):
            words.append(f"by probe-patch {result.request.version}")
        if result.request.debugger != BUILTIN:
            words.append(f"driving {result.request.debugger}")
        if result.request.config:
            words.append(f"with {result.request.config}")
    return " ".join(words)


def _print_json(report: Report) -> None:
    written = not report.dry_run and not any(result.error for result in report.results)
    document = {
        "tool": "probe-patch",
        "version": __version__,
        "command": report.verb,
        "dry_run": report.dry_run,
        "files": [_as_json(result, written) for result in report.results],
    }
    click.echo(json.dumps(document, indent=2))


def _as_json(result: Result, written: bool) -> dict[str, object]:
    request = result.request
    return {
        "path": str(result.target.path),
        "shown": result.target.shown,
        "side": result.side,
        "state": result.state.value,
        "changed": result.changed and written,
        "would_change": result.changed,
        "as_expected": result.as_expected,
        "patched_by": None if request is None else request.version,
        "phases": [] if request is None else list(request.phases),
        "config": None if request is None else request.config,
        "debugger": None if request is None else request.debugger,
        "notes": list(result.notes),
        "error": None if result.error is None else str(result.error),
    }


def _findings(report: Report) -> Iterator[tuple[Result, str]]:
    for result in report.results:
        if result.error is not None:
            yield result, str(result.error)
        elif not result.as_expected:
            yield result, f"{result.target.shown}: {_outcome(report, result)}; {'; '.join(result.notes)}"


def _print_github(report: Report) -> None:
    """Workflow commands, which GitHub shows on the file they name."""
    for result, message in _findings(report):
        echo(f"::error file={_github_property(result.target.shown)},line=1,title=probe-patch::{_github_data(message)}")


def _github_data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _github_property(text: str) -> str:
    return _github_data(text).replace(":", "%3A").replace(",", "%2C")


def _print_sarif(report: Report) -> None:
    """SARIF 2.1.0, https://docs.oasis-open.org/sarif/sarif/v2.1.0/."""
    results = [
        {
            "ruleId": "refused" if result.error is not None else "unexpected-state",
            "level": "error",
            "message": {"text": message},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": result.target.path.as_uri()},
                        "region": {"startLine": 1},
                    }
                }
            ],
        }
        for result, message in _findings(report)
    ]
    driver = {
        "name": "probe-patch",
        "version": __version__,
        "rules": [
            {"id": "refused", "shortDescription": {"text": "The file cannot be patched or read."}},
            {"id": "unexpected-state", "shortDescription": {"text": "The file is not in the state that was expected."}},
        ],
    }
    document = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
    click.echo(json.dumps(document, indent=2))
