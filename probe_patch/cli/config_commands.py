"""``config init`` and ``config check``."""

from pathlib import Path

import click

from probe_patch.cli.errors import say_note
from probe_patch.cli.options import PATH, format_option
from probe_patch.cli.output import echo
from probe_patch.config import load_config, parse_config, starter_config
from probe_patch.errors import Refused, SystemFailed


@click.group()
def config() -> None:
    """Write a starter config.json, or check one."""


@config.command()
@click.argument("file", type=PATH, default=Path("config.json"))
@click.option(
    "--dump-path", metavar="FOLDER", default=None, help="Where dumps go [default: probe_patch_dump beside FILE]."
)
def init(file: Path, dump_path: str | None) -> None:
    """Write a starter config.json to FILE (config.json)."""
    folder = Path(dump_path or file.absolute().parent / "probe_patch_dump")
    text = starter_config(str(folder if str(folder).startswith("~") else folder.absolute()))
    parse_config(text, "what would be written")
    try:
        stream = file.open("x", encoding="utf-8")
    except FileExistsError:
        raise Refused(f"{file}: is there already; name another file, or remove it first") from None
    except OSError as error:
        raise SystemFailed(f"{file}: cannot be written ({error.strerror})") from None
    try:
        with stream:
            stream.write(text)
    except OSError as error:
        file.unlink(missing_ok=True)
        raise SystemFailed(f"{file}: cannot be written ({error.strerror})") from None
    echo(str(file))
    click.echo(f"dumps go to {folder.absolute()}; use it with: probe-patch env --config {file}", err=True)


@config.command()
@click.argument("file", type=PATH)
@format_option(("text", "json"))
def check(file: Path, output: str) -> None:
    """Check FILE: every key known, every value one that this version serves."""
    loaded = load_config(file)
    if output == "json":
        echo(loaded.config.model_dump_json(indent=2, by_alias=True))
    for warning in loaded.warnings:
        say_note(f"{file}: {warning}")
    if output == "text":
        echo(f"{file}: good")
