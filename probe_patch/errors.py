"""Everything probe-patch can refuse or fail at, each with the sentence its user reads.

The message of an error is that sentence: what is wrong, where, and what to do. The command line prints it
and exits with ``exit_code``; nothing else about the error is shown.
"""

from typing import ClassVar


class ProbePatchError(Exception):
    """Base of every error a user can meet."""

    exit_code: ClassVar[int] = 4


class WrongUsage(ProbePatchError):
    """The command was given something it does not take."""

    exit_code = 2


class ConfigError(WrongUsage):
    """A config.json that cannot be read, or asks for what does not exist."""


class Refused(ProbePatchError):
    """The target cannot be patched safely; nothing was written."""

    exit_code = 3


class BackendUnavailable(ProbePatchError):
    """A way to measure tensors that this machine does not have; the sentence says what is missing."""


class SystemFailed(ProbePatchError):
    """The machine said no (permission, space, a file that changed meanwhile); what was begun is rolled back."""

    exit_code = 4
