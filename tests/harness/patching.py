"""The patcher as the tests with real actors call it."""

import functools

from probe_patch.dump_format import Phase
from probe_patch.patcher.request import ALL_PHASES, Request
from probe_patch.patcher.rewrite import apply


@functools.cache
def patched(source: bytes, phases: tuple[Phase, ...] = ALL_PHASES) -> bytes:
    """``source``, patched to dump ``phases``.

    Raises:
        Refused: the patcher does not take this source.
    """
    return apply(source, Request(phases), "actor.py").source
