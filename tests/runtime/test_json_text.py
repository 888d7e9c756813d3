"""NaN and infinities in the files: msProbe's bare tokens, or strings."""

import json
import math
import signal
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from probe_patch.runtime import batch, json_text
from probe_patch.runtime.ascii_text import AsciiText
from probe_patch.runtime.json_text import BARE, STRICT, JsonStyle, named_floats
from probe_patch.runtime.record_text import add_record
from tests.interpreted import Replace
from tests.runtime.configs import debugger_with, recorded
from tests.runtime.dumps import only_rank, read_dump
from tests.runtime.toys import Around, Echo, Mlp, ones

NOT_FINITE = torch.tensor([math.nan, math.inf, -math.inf])


floats = st.floats() | st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7976931348623157e308, 1e16, 0.1])


@pytest.mark.parametrize(
    ("value", "bare", "strict"),
    [
        (math.nan, "NaN", '"NaN"'),
        (math.inf, "Infinity", '"Infinity"'),
        (-math.inf, "-Infinity", '"-Infinity"'),
        (1.5, "1.5", "1.5"),
        (True, "true", "true"),
        (None, "null", "null"),
        (10**30, str(10**30), str(10**30)),
        ('a"\u2028', r'"a\"\u2028"', r'"a\"\u2028"'),
        (signal.SIGTERM, "15", "15"),
    ],
)
def test_values_that_hold_no_others(value: object, bare: str, strict: str) -> None:
    assert (BARE.leaf(value), STRICT.leaf(value)) == (bare, strict)


@pytest.mark.parametrize("write", [BARE.leaf, STRICT.leaf, named_floats])
def test_what_has_no_form_is_refused(write: Callable[[object], object]) -> None:
    with pytest.raises(TypeError, match="object has no form in JSON"):
        write(object())


def written(style: JsonStyle, values: list[float]) -> list[str]:
    """Each by itself, the last one first."""
    numbers, texts = style.numbers(array("d", values)), list[str]()
    for place in reversed(range(len(values))):
        text = AsciiText()
        text.add_listed(("", ""), numbers, place)
        texts.append(bytes(text.view()).decode())
    return texts[::-1]


@pytest.mark.parametrize("missing", ["nothing", "numpy", "orjson"])
@given(values=st.lists(floats))
def test_many_floats_come_back_as_they_were(missing: str, values: list[float]) -> None:
    with pytest.MonkeyPatch.context() as patched:
        if missing != "nothing":
            patched.setattr(json_text, missing, None)
        bare, strict = written(BARE, values), written(STRICT, values)
    assert repr([json.loads(text) for text in bare]) == repr(values)
    names = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
    expected = [value if math.isfinite(value) else names[repr(value)] for value in values]
    assert repr([json.loads(text) for text in strict]) == repr(expected)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
                    lambda parts: st.lists(parts) | st.dictionaries(st.text(), parts)))  # fmt: skip
def test_named_floats_are_strict_json(value: object) -> None:
    def refuse(token: str) -> Any:
        raise AssertionError(f"{token} is no JSON")

    json.loads(json.dumps(named_floats(value)), parse_constant=refuse)


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


def test_each_entry_is_encoded_once_however_often_the_dump_is_written(tmp_path: Path, replace: Replace) -> None:
    encoded: list[str] = []

    def counted(text: AsciiText, *rest: Any) -> None:
        encoded.append(json.loads(bytes(text.view()).rpartition(b"\n")[2].removesuffix(b": ")))
        add_record(text, *rest)

    replace(batch, "add_record", counted)
    debugger, model = debugger_with(tmp_path), Mlp()
    for _ in range(5):
        debugger.start(model)
        model(ones(2, 4)).sum().backward()
        debugger.stop()
    dump = read_dump(only_rank(tmp_path / "dump" / "step0"))
    assert len(encoded) == len(set(encoded)) == len(dump.data)
    assert list(dump.data) == encoded
    assert {f"Module.norm.LayerNorm.forward.{call}" for call in range(5)} < set(encoded)
