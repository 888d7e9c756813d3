"""How an error reaches the user: one sentence on stderr and an exit code, never a traceback."""

import contextlib
import errno
import sys
from pathlib import Path
from typing import Any

import click

from probe_patch.entry import exit_code_of, sentence_of
from probe_patch.errors import ProbePatchError, SystemFailed


class Commands(click.Group):
    """A click group whose commands end with the exit code of the error they raise."""

    def main(self, *arguments: Any, **options: Any) -> Any:
        """As click's, which lets a full disk out as a traceback while it prints help."""
        try:
            return super().main(*arguments, **options)
        except OSError as error:
            say_error(SystemFailed(_sentence(error)))
            sys.exit(SystemFailed.exit_code)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ProbePatchError as error:
            say_error(error)
            ctx.exit(error.exit_code)
        except KeyboardInterrupt as interruption:
            # click would end with 1, the code of a check that found a difference.
            with contextlib.suppress(OSError):  # a terminal that hangs up takes no sentence
                click.echo(sentence_of(interruption), err=True)
            ctx.exit(exit_code_of(interruption))
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise  # the reader of our output has gone; click ends quietly
            say_error(SystemFailed(_sentence(error)))
            ctx.exit(SystemFailed.exit_code)


def _sentence(error: OSError) -> str:
    if error.strerror is None:
        return str(error)
    if error.filename is None:
        try:
            Path.cwd()
        except OSError as gone:
            return f"the current directory: cannot be looked at ({gone.strerror}); go to one that exists"
        return f"cannot print ({error.strerror}); probe-patch status tells what was done"
    return f"{error.filename}: {error.strerror}"


def say_note(note: str) -> None:
    click.echo(f"note: {note}", err=True)


def say_error(error: ProbePatchError) -> None:
    click.echo(f"probe-patch: {error}", err=True)
