"""``launch-args``: what to start SGLang with so that a dump is complete."""

import json
import shlex
from dataclasses import dataclass
from pathlib import Path

import click
from packaging.version import Version

from probe_patch.cli.errors import say_note
from probe_patch.cli.options import format_option
from probe_patch.cli.output import echo
from probe_patch.config import load_config
from probe_patch.config.model import Config
from probe_patch.dump_format import PD_ROLES
from probe_patch.errors import WrongUsage
from probe_patch.launch.advice import Advice, Via, advice, parse_version
from probe_patch.launch.native import is_native
from probe_patch.launch.package import package_among, package_in
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
@click.argument("tree", metavar="[TREE]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--for", "via", type=click.Choice(["sglang", "slime"]), default="sglang", show_default=True, help="Whose flags."
)
@click.option("--sglang-version", metavar="VERSION", help="The version to print for, instead of finding it.")
@click.option("--config", "config_file", metavar="FILE", type=click.Path(path_type=Path), help="What is dumped.")
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
    config = _load(config_file)
    modes = frozenset({"extend"}) if config is None else _modes(config)
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


def _load(file: Path | None) -> Config | None:
    if file is None:
        return None
    loaded = load_config(file)
    for warning in loaded.warnings:
        say_note(f"{file}: {warning}")
    return loaded.config


def _modes(config: Config) -> frozenset[str]:
    """The modes that any server is to dump; prefill and decode servers count where config.json speaks of them."""
    rollout = config.rollout
    sections = [rollout.for_role(role) for role in PD_ROLES if role == "null" or role in rollout.model_fields_set]
    return frozenset(mode for section in sections for mode in section.modes)


def _explain(found: _Found, via: Via, advices: tuple[Advice, ...]) -> None:
    what = f"SGLang {found.version or 'of unknown version'}"
    say_note(what if found.folder is None else f"{what} in {found.folder}")
    if found.version is not None and Version(found.version).is_devrelease and found.fields is None:
        say_note("a development build may have other flags than its number says; name its TREE to have its source read")
    if is_native(found.version, found.fields):
        say_note(
            "this SGLang is not patched: with DUMP_ON=1 the plugin of probe-patch dumps, wherever both are installed; "
            "--msprobe-dump-config turns on msProbe's hook, not this dump"
        )
    for each in advices:
        say_note(f"{_what(each)}{each.reason}")
    if via == "slime":
        say_note("the variables belong into the environment of the Ray job, which slime's engines inherit")


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
