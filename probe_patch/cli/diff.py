"""What a command would change, as a unified diff that ``git apply`` and ``patch -p0`` take."""

import difflib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from probe_patch.patcher.result import Result

_NEEDS_QUOTES = re.compile(rb'[\x00-\x1f\x7f"\\]')


def print_diff(results: Sequence[Result]) -> None:
    """Nothing where one of ``results`` was refused: the command itself would write nothing either."""
    if any(result.error for result in results):
        return
    for result in results:
        if result.before is not None and result.changed:
            label = diff_label(result.target.path, Path.cwd())
            click.echo(b"".join(_diff(label, result.before.content, result.after)), nl=False)


def diff_label(path: Path, folder: Path) -> bytes:
    """How ``path`` is called in the diff's header, for a user in ``folder`` (both resolved).

    The leading ``./`` is what ``git apply`` strips by default and what ``patch -p0`` keeps, so both find the file. A
    path outside ``folder`` stays absolute, which both tools refuse: go there first. The tab ends a name that may have
    spaces; a name with quotes, backslashes or control characters is quoted as git does it.
    """
    name = f"./{path.relative_to(folder)}" if path.is_relative_to(folder) else str(path)
    label = name.encode("utf-8", "surrogateescape")
    if _NEEDS_QUOTES.search(label):
        return b'"' + _NEEDS_QUOTES.sub(lambda match: b"\\%03o" % match[0][0], label) + b'"'
    return label + b"\t"


def _diff(label: bytes, before: bytes, after: bytes) -> Iterator[bytes]:
    lines = difflib.diff_bytes(difflib.unified_diff, _lines(before), _lines(after), label, label, lineterm=b"\n", n=3)
    for line in lines:
        yield line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n"


def _lines(source: bytes) -> list[bytes]:
    """Lines as diff and patch count them: only ``\\n`` ends one."""
    parts = source.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
