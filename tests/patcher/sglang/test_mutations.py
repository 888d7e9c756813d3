"""Thousands of variants of one model_runner.py: patched rightly or refused with a sentence, never anything else.

What is right is decided by running the file, unpatched and patched.
"""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe_patch.errors import Refused
from probe_patch.patcher.request import Request
from probe_patch.patcher.rewrite import apply, strip
from probe_patch.patcher.syntax import compile_source
from tests.harness.model_runner import FILE_NAME, load_model_runner
from tests.patcher.mutations import on_disk
from tests.patcher.sglang.runner_mutations import harmful_texts, harmless_texts
from tests.patcher.sglang.small_runner import SMALL_RUNNER, STAND_INS, run_batches
from tests.patcher.test_mutations import MANY

REQUEST = Request(("ref",), "/c.json")


def patched(source: bytes) -> bytes:
    result = apply(source, REQUEST, FILE_NAME).source
    assert strip(result, FILE_NAME) == source
    assert apply(result, REQUEST, FILE_NAME).source == result
    return result


def check_runs(source: bytes, result: bytes) -> None:
    try:
        plain = load_model_runner(source, None, STAND_INS)
    except Exception:
        return  # it does not even import, patched or not
    expected = run_batches(plain)
    off = load_model_runner(result, "0", STAND_INS)
    assert (off.probe, run_batches(off)) == (None, expected)
    on = load_model_runner(result, "1", STAND_INS)
    assert run_batches(on) == expected
    assert on.probe is not None
    began = [name for name, what in on.probe.events if what == "begins"]
    assert began == ["init", *["forward"] * (len(expected) - 2 if len(expected) > 1 else 0)]
    assert len(on.probe.events) == 2 * len(began)


@MANY
@given(source=on_disk(harmless_texts))
def test_harmless_variants_are_patched(source: bytes) -> None:
    try:
        compile_source(source, FILE_NAME)
    except Refused:
        # Some combinations are no Python (a cookie that cannot encode a comment, a continuation before a comment).
        with pytest.raises(Refused):
            apply(source, REQUEST, FILE_NAME)
        return
    check_runs(source, patched(source))


@MANY
@given(source=on_disk(harmful_texts))
def test_harmful_variants_are_patched_rightly_or_refused(source: bytes) -> None:
    try:
        result = patched(source)
    except Refused as refusal:
        assert str(refusal).startswith(FILE_NAME)
        assert "\n" not in str(refusal)
        return
    check_runs(source, result)


@MANY
@given(data=st.binary(max_size=200))
def test_bytes_that_are_no_model_runner_are_refused(data: bytes) -> None:
    with pytest.raises(Refused):
        apply(data, REQUEST, FILE_NAME)


@cache
def whole_patch() -> bytes:
    return patched(SMALL_RUNNER.encode())


@MANY
@given(cut=st.integers(0, 10_000), tail=st.binary(max_size=8))
def test_half_edited_patches_are_mended_or_refused(cut: int, tail: bytes) -> None:
    """Somebody deletes a line of a patched file, or types into it: ``apply`` gives a whole patch again, or refuses."""
    lines = whole_patch().splitlines(keepends=True)
    edited = [*lines[: cut % len(lines)], tail + b"\n", *lines[cut % len(lines) + 1 :]]
    try:
        result = apply(b"".join(edited), REQUEST, FILE_NAME).source
    except Refused:
        return
    assert patched(strip(result, FILE_NAME)) == result
