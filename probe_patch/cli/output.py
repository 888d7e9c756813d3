"""Printing data: whatever bytes a path holds, they come out as they are."""

import click


def echo(text: str) -> None:
    """Print a line of data to stdout, as UTF-8; a path that is not valid UTF-8 comes out as the bytes it is."""
    try:
        data = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        data = text.encode("utf-8", "backslashreplace")
    click.echo(data)
