"""What a patched actor must do, worked out from what the unpatched one did."""

import itertools
from collections.abc import Iterator, Sequence

from probe_patch.dump_format import Phase
from tests.harness.scenarios import Scenario
from tests.harness.trace import PHASE_OF_CALL, ROLLOUT, Event


def with_probe(events: Sequence[Event], scenario: Scenario, phases: Sequence[Phase]) -> tuple[Event, ...]:
    """``events`` of an unpatched run, with what a patch for ``phases`` adds to them.

    The debugger is made before anything else. Each phase stands alone between its start and its stop, except that one
    that raises is not stopped by its own statement. Training steps in a row are one phase: the block that holds them is
    bracketed as a whole. The function that holds the phases is entered, finished and stepped
    once each, if it is called at all.
    """
    return tuple(_with_probe(events, scenario, phases))


def _with_probe(events: Sequence[Event], scenario: Scenario, phases: Sequence[Phase]) -> Iterator[Event]:
    yield ("init", scenario.role)
    for event, alike in itertools.groupby(events):
        repeats = list(alike)
        phase = PHASE_OF_CALL.get(event)
        if phase is None or phase not in phases:
            yield from repeats
            if event == ROLLOUT:
                yield ("enter",)
            continue
        yield ("start", phase)
        yield from repeats
        if phase != scenario.fail_in:
            yield ("stop", phase)
    if ROLLOUT in events:
        yield ("finish",)
        yield ("step",)
