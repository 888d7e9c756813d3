"""NaN and infinities in the files: msProbe's bare tokens, or strings."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from probe_patch.runtime.json_text import bare_tokens, json_text, no_form, strict
from probe_patch.runtime.store import Store
from tests.runtime.configs import debugger_with, recorded
from tests.runtime.dumps import only_rank, read_dump
from tests.runtime.toys import Around, Echo, Mlp, ones

NOT_FINITE = torch.tensor([math.nan, math.inf, -math.inf])


class Three:
    """Something that is expanded."""


def expand(value: object) -> object:
    return [3.0, math.inf] if isinstance(value, Three) else no_form(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (math.nan, '"NaN"'),
        (math.inf, '"Infinity"'),
        (-math.inf, '"-Infinity"'),
        (1.5, "1.5"),
        ({"a": (1, [math.nan, True, None, "NaN"])}, '{"a": [1, ["NaN", true, null, "NaN"]]}'),
        ([Three()], '[[3.0, "Infinity"]]'),
    ],
)
def test_strictly_they_are_strings(value: object, text: str) -> None:
    assert strict(value, expand) == text


def test_msprobes_readers_get_bare_tokens() -> None:
    assert (
        bare_tokens([math.nan, math.inf, -math.inf, Three()], expand) == "[NaN, Infinity, -Infinity, [3.0, Infinity]]"
    )
    assert (json_text(False), json_text(True)) == (bare_tokens, strict)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
                    lambda parts: st.lists(parts) | st.dictionaries(st.text(), parts)))  # fmt: skip
def test_what_is_finite_is_written_as_ever(value: object) -> None:
    def refuse(token: str) -> Any:
        raise AssertionError(f"{token} is no JSON")

    text = strict(value, no_form)
    json.loads(text, parse_constant=refuse)
    if "NaN" not in (bare := bare_tokens(value, no_form)) and "Infinity" not in bare:
        assert text == bare


@pytest.mark.parametrize("write", [bare_tokens, strict])
def test_what_has_no_form_is_refused(write: Any) -> None:
    with pytest.raises(TypeError, match="object has no form in JSON"):
        write([object(), math.nan], no_form)


@pytest.mark.parametrize(
    ("keys", "numbers", "plain"),
    [
        ({"strict_json": True}, ["NaN", "NaN", "NaN", "NaN"], "Infinity"),
        ({}, [math.nan] * 4, math.inf),
    ],
    ids=["strict", "msprobe"],
)
def test_dump_json(tmp_path: Path, keys: dict[str, Any], numbers: list[Any], plain: object) -> None:
    record = recorded(tmp_path, Around(Echo()), NOT_FINITE, math.inf, keys=keys).data["Module.inner.Echo.forward.0"]
    tensor, scalar = record["input_args"]
    assert repr([tensor[key] for key in ("Max", "Min", "Mean", "Norm")]) == repr(numbers)
    assert scalar == {"type": "float", "value": plain}


def test_each_entry_is_encoded_once_however_often_the_dump_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[str] = []
    original = Store._line

    def counted(store: Store, entry: str, record: Any, readings: Any) -> str:
        encoded.append(entry)
        return original(store, entry, record, readings)

    monkeypatch.setattr(Store, "_line", counted)
    debugger, model = debugger_with(tmp_path), Mlp()
    for _ in range(5):
        debugger.start(model)
        model(ones(2, 4)).sum().backward()
        debugger.stop()
    dump = read_dump(only_rank(tmp_path / "dump" / "step0"))
    assert len(encoded) == len(set(encoded)) == len(dump.data)
    assert list(dump.data) == encoded
    assert {f"Module.norm.LayerNorm.forward.{call}" for call in range(5)} < set(encoded)
