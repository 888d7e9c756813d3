"""Thousands of variants of one actor: patched rightly or refused with a sentence, never anything else.

What is right is decided by running the file, unpatched and patched: the same calls in the same order, each phase alone
between its start and its stop.
"""

from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from probe_patch.errors import Refused
from probe_patch.patcher.request import ALL_PHASES, Request
from probe_patch.patcher.rewrite import apply, strip
from probe_patch.patcher.syntax import compile_source
from tests.harness.expected_events import with_probe
from tests.harness.recording_probe import RecordingProbe
from tests.harness.run_actor import run_actor
from tests.harness.scenarios import DEFAULT, Scenario
from tests.patcher.actor_mutations import harmful_texts, harmless_texts
from tests.patcher.mutations import on_disk
from tests.patcher.small_actor import SMALL_ACTOR

MANY = settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))
PHASES = st.sampled_from([("ref",), ("old", "actor"), ALL_PHASES])


def patched(source: bytes, request: Request) -> bytes:
    result = apply(source, request, "actor.py").source
    assert strip(result, "actor.py") == source
    assert apply(result, request, "actor.py").source == result
    return result


def check_sequence(source: bytes, result: bytes, request: Request, scenario: Scenario) -> None:
    plain = run_actor(source, scenario)
    if plain.raised is not None and plain.raised is not plain.failure:
        return
    probed = run_actor(result, scenario, RecordingProbe)
    assert probed.events == with_probe(plain.events, scenario, request.phases)
    assert run_actor(result, scenario).events == plain.events


@MANY
@given(source=on_disk(harmless_texts), phases=PHASES)
def test_harmless_variants_are_patched(source: bytes, phases: tuple[str, ...]) -> None:
    request = Request(phases)  # type: ignore[arg-type]
    try:
        compile_source(source, "actor.py")
    except Refused:
        # Some combinations are no Python (a cookie that cannot encode a comment, a continuation before a comment).
        with pytest.raises(Refused):
            apply(source, request, "actor.py")
        return
    check_sequence(source, patched(source, request), request, DEFAULT)


@MANY
@given(source=on_disk(harmful_texts), phases=PHASES)
def test_harmful_variants_are_patched_rightly_or_refused(source: bytes, phases: tuple[str, ...]) -> None:
    request = Request(phases)  # type: ignore[arg-type]
    try:
        result = patched(source, request)
    except Refused as refusal:
        assert str(refusal).startswith("actor.py")
        assert "\n" not in str(refusal)
        return
    try:
        run_actor(source, DEFAULT)
    except Exception:
        return  # it does not even import, patched or not
    check_sequence(source, result, request, DEFAULT)


@MANY
@given(data=st.binary(max_size=200))
def test_bytes_that_are_no_actor_are_refused(data: bytes) -> None:
    with pytest.raises(Refused):
        apply(data, Request(), "actor.py")


@cache
def whole_patch(phases: tuple[str, ...]) -> bytes:
    return patched(SMALL_ACTOR.encode(), Request(phases))  # type: ignore[arg-type]


@MANY
@given(cut=st.integers(0, 10_000), tail=st.binary(max_size=8), phases=PHASES)
def test_half_edited_patches_are_mended_or_refused(cut: int, tail: bytes, phases: tuple[str, ...]) -> None:
    """Somebody deletes a line of a patched file, or types into it: ``apply`` gives a whole patch again, or refuses."""
    request = Request(phases)  # type: ignore[arg-type]
    lines = whole_patch(phases).splitlines(keepends=True)
    edited = [*lines[: cut % len(lines)], tail + b"\n", *lines[cut % len(lines) + 1 :]]
    try:
        result = apply(b"".join(edited), request, "actor.py").source
    except Refused:
        return
    assert patched(strip(result, "actor.py"), request) == result
