"""Text that grows at its end: compiled and as plain Python, the same."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probe_patch.runtime import ascii_text
from tests.runtime.plain import plain_twin

PLAIN = plain_twin(ascii_text)
MODULES = pytest.mark.parametrize("module", [ascii_text, PLAIN], ids=["as it is imported", "plain"])

ascii_only = st.text(st.characters(max_codepoint=127))
strings = st.text() | ascii_only | st.text(st.sampled_from('a.0"\\\x1f\x7f é'), max_size=20)
uint64 = st.integers(0, 2**64 - 1)
PIECES: dict[str, Any] = {
    "add": st.tuples(ascii_only),
    "add_string": st.tuples(strings),
    "add_inside": st.tuples(strings),
    "add_key": st.tuples(ascii_only, strings),
    "add_integer": st.tuples(uint64),
    "add_hexadecimal": st.tuples(uint64, st.integers(1, 16)),
    "cut": st.tuples(st.integers(0, 1000)),
}
calls = st.lists(st.sampled_from(sorted(PIECES)).flatmap(lambda name: st.tuples(st.just(name), PIECES[name])))


class Odd(str):
    __slots__ = ()


def written(text: Any) -> str:
    with text.view() as view:
        return str(view, "ascii")


@settings(deadline=None)
@given(calls)
def test_compiled_or_not_the_text_is_the_same(calls: list[tuple[str, tuple[Any, ...]]]) -> None:
    texts = [ascii_text.AsciiText(), PLAIN.AsciiText()]
    for name, values in calls:
        for text in texts:
            getattr(text, name)(*values)
        assert written(texts[0]) == written(texts[1])
        assert texts[0].size == texts[1].size == len(written(texts[0]))


@MODULES
@settings(deadline=None)
@given(strings)
def test_a_string_is_written_as_json_has_it(module: Any, value: str) -> None:
    text, inside, key = module.AsciiText(), module.AsciiText(), module.AsciiText()
    for string in (value, Odd(value)):
        for each in (text, inside, key):
            each.cut(0)
        text.add_string(string)
        inside.add_inside(string)
        key.add_key("{", string)
        assert written(text) == json.dumps(value)
        assert f'"{written(inside)}"' == json.dumps(value)
        assert written(key) + "1}" == json.dumps({value: 1})


@MODULES
def test_integers(module: Any) -> None:
    text = module.AsciiText()
    for value in (0, 9, 10, 2**64 - 1):
        text.add_integer(value)
        text.add(" ")
    text.add_hexadecimal(0xAB, 8)
    text.add(" ")
    text.add_hexadecimal(2**64 - 2, 16)
    assert written(text) == "0 9 10 18446744073709551615 000000ab fffffffffffffffe"


@MODULES
@settings(deadline=None)
@given(items=st.lists(st.sampled_from(["1", "-2.5e-3", "null", "0.1"])), data=st.data())
def test_items_of_an_array(module: Any, items: list[str], data: st.DataObject) -> None:
    listed = module.Listed(f"[{','.join(items)}]".encode(), len(items))
    assert listed.nulls == [place for place, item in enumerate(items) if item == "null"]
    replaced = data.draw(st.sets(st.sampled_from(listed.nulls))) if listed.nulls else set()
    for place in replaced:
        listed.replace(place, "NaN")
        items[place] = "NaN"
    first = data.draw(st.integers(0, len(items)))
    end = data.draw(st.integers(first, len(items)))
    text = module.AsciiText()
    text.add_listed(("<", *["|"] * (end - first - 1), ">")[: end - first + 1], listed, first)
    assert written(text) == ("<" + "|".join(items[first:end]) + ">" if end > first else "<")


@MODULES
@pytest.mark.parametrize(("count", "first"), [(1, -1), (1, 3), (4, 0), (2, 2)])
def test_items_that_are_not_there(module: Any, count: int, first: int) -> None:
    text, listed = module.AsciiText(), module.Listed(b"[1,2,3]", 3)
    with pytest.raises(IndexError):
        text.add_listed(("",) * (count + 1), listed, first)
    with pytest.raises(ValueError, match="these are 3 items, not 4"):
        module.Listed(b"[1,2,3]", 4)


@MODULES
def test_what_is_not_ascii_is_refused_where_it_is_not_escaped(module: Any) -> None:
    text = module.AsciiText()
    with pytest.raises(UnicodeEncodeError):
        text.add("é")
    for add in (text.add_string, text.add_inside, lambda name: text.add_key("", name)):
        with pytest.raises(TypeError):
            add(1)
    assert written(text) == ""


@MODULES
def test_a_text_that_is_being_read_does_not_move(module: Any) -> None:
    text = module.AsciiText()
    text.add("a")
    with text.view() as view:
        with pytest.raises(BufferError):
            text.add("b" * 10_000)
        assert bytes(view) == b"a"
    text.add("b")
    assert written(text) == "ab"
