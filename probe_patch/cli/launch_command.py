"""``launch-args``: what to start SGLang with so that a dump is complete."""

import json
import shlex
from dataclasses import dataclass
from pathlib import Path

import click
from packaging.version import Version

from probe_patch.cli.dumped_modes import dumped_modes
from probe_patch.cli.errors import say_note
from probe_patch.cli.named_config import checked_config_of
from probe_patch.cli.options import PATH, debugger_option, format_option
from probe_patch.cli.output import echo
from probe_patch.debuggers import BUILTIN, DebuggerName
from probe_patch.errors import WrongUsage
from probe_patch.launch.advice import Advice, Via, advice, is_too_old, parse_version
from probe_patch.launch.native import is_native
from probe_patch.launch.package import package_among, package_in
from probe_patch.launch.settings import NEWEST
from probe_patch.launch.source import read_fields
from probe_patch.launch.version import find_version
from probe_patch.patcher.interpreter import importable


@dataclass(frozen=True)
class _Found:
    """An SGLang: its version and the fields of its ``ServerArgs``, each None where unknown, and where it is."""

    version: str | None
    fields: frozenset[str] | None
    folder: Path | None


@click.command("launch-args")
@click.argument("tree", metavar="[TREE]", required=False, type=PATH)
@click.option(
    "--for", "via", type=click.Choice(["sglang", "slime"]), default="sglang", show_default=True, help="Whose flags."
)
@click.option("--sglang-version", metavar="VERSION", help="The version to print for, instead of finding it.")
@click.option("--config", "config_file", metavar="FILE", type=PATH, help="What is dumped.")
@debugger_option
@click.option(
    "--python", metavar="EXE", help="Ask this interpreter, instead of this one, which SGLang it would import."
)
@click.option("--environment", is_flag=True, help="Print the variables to set, NAME=value, instead of the flags.")
@format_option(("text", "json"))
def launch_args(
    tree: Path | None,
    via: Via,
    sglang_version: str | None,
    config_file: Path | None,
    debugger: DebuggerName | None,
    python: str | None,
    environment: bool,
    output: str,
) -> None:
    """Print what to start SGLang with so that a dump is complete: the flags on stdout, why on stderr.

    \b
      python -m sglang.launch_server --model-path … $(probe-patch launch-args)
      env $(probe-patch launch-args --environment) python -m sglang.launch_server …
    """
    found = _named(sglang_version, tree, python) if sglang_version is not None else _look(tree, python)
    config = None if config_file is None else checked_config_of(debugger or BUILTIN, config_file)
    modes = frozenset({"extend"}) if config is None else dumped_modes(config.rollout)
    advices = advice(found.version, via, modes, "L0" if config is None else config.level, found.fields)
    if output == "json":
        click.echo(json.dumps(_document(found, via, advices), indent=2))
        return
    _explain(found, via, advices)
    words = _assignments(advices) if environment else [word for each in advices for word in each.words]
    echo(shlex.join(words))


def _named(version: str, tree: Path | None, python: str | None) -> _Found:
    if tree is not None or python is not None:
        raise WrongUsage("--sglang-version says which SGLang; leave out TREE and --python, which find one")
    return _Found(str(parse_version(version)), None, None)


def _look(tree: Path | None, python: str | None) -> _Found:
    if tree is not None and python is not None:
        raise WrongUsage("--python finds SGLang where no TREE is named; leave one of them out")
    if tree is not None:
        package = package_in(tree)
    else:
        package = package_among(importable(("sglang",), python), python or "this Python")
    return _Found(find_version(package), read_fields(package), package)


def _explain(found: _Found, via: Via, advices: tuple[Advice, ...]) -> None:
    what = f"SGLang {_named_version(found.version)}"
    say_note(what if found.folder is None else f"{what} in {found.folder}")
    if found.version is not None:
        _say_what_is_not_known(Version(found.version), source_was_read=found.fields is not None)
    if is_native(found.version, found.fields):
        say_note(
            "this SGLang is not patched: with DUMP_ON=1 the plugin of probe-patch dumps, wherever both are installed; "
            "--msprobe-dump-config turns on msProbe's hook, not this dump"
        )
    for each in advices:
        say_note(f"{_what(each)}{each.reason}")
    if via == "slime":
        say_note("the variables belong into the environment of the Ray job, which slime's engines inherit")


def _named_version(version: str | None) -> str:
    if version is None:
        return "of unknown version"
    return f"of unknown version (it calls itself {version})" if is_too_old(version) else version


def _say_what_is_not_known(version: Version, source_was_read: bool) -> None:
    if version.is_prerelease and not source_was_read:
        say_note(
            "a development build or pre-release may have other flags than its number says; name its TREE to have its "
            "source read"
        )
    elif Version(version.public) > Version(NEWEST):
        say_note(f"it is later than {NEWEST}, the newest that probe-patch knows; its flags may differ from these")


def _what(each: Advice) -> str:
    if each.words:
        return f"{shlex.join(each.words)}: without it, "
    if each.environment is not None:
        return f"set {'='.join(each.environment)}: without it, "
    if each.avoid is not None:
        return f"leave out {each.avoid}: with it, "
    return f"{each.concern}: "


def _assignments(advices: tuple[Advice, ...]) -> list[str]:
    return ["=".join(each.environment) for each in advices if each.environment is not None]


def _document(found: _Found, via: Via, advices: tuple[Advice, ...]) -> dict[str, object]:
    return {
        "sglang": found.version,
        "found_in": None if found.folder is None else str(found.folder),
        "native": is_native(found.version, found.fields),
        "for": via,
        "arguments": [word for each in advices for word in each.words],
        "environment": dict(each.environment for each in advices if each.environment is not None),
        "leave_out": [each.avoid for each in advices if each.avoid is not None],
        "reasons": [{"concern": each.concern, "what": list(each.words), "why": each.reason} for each in advices],
    }
