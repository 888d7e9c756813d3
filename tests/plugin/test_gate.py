"""The function and the template that patched files carry are one rule."""

import os
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe_patch.errors import WrongUsage
from probe_patch.gate import dump_is_on
from probe_patch.resources import data_folder

TEMPLATE = compile(
    (data_folder("templates") / "gate.py").read_text("utf-8").replace("__RUNTIME__", "slime"), "gate.py", "exec"
)
UNSET: dict[str, str] = {}

ON = ["1", "true", "yes", "on", "True", "YES", "oN", " 1 ", "on\n"]
OFF = ["", "0", "false", "no", "off", "False", "NO", "oFF", " 0\t", "   "]
NEITHER = ["2", "y", "t", "enable", "01", "1.0", "truee", "o n", "None", "'1'", "ja", "\uff11"]


def template_says(environ: dict[str, str]) -> bool | str:
    """On or off, or the sentence it stops the process with."""
    names: dict[str, object] = {}
    with mock.patch.dict(os.environ, environ, clear=True):
        try:
            exec(TEMPLATE, names)
        except ValueError as error:
            return str(error)
    return names["_ProbePatch"] is not None


def function_says(environ: dict[str, str]) -> bool | str:
    try:
        return dump_is_on(environ)
    except WrongUsage as error:
        return str(error)


@pytest.mark.parametrize(
    ("environ", "on"),
    [(UNSET, False), *(({"DUMP_ON": it}, True) for it in ON), *(({"DUMP_ON": it}, False) for it in OFF)],
    ids=repr,
)
def test_on_and_off(environ: dict[str, str], on: bool) -> None:
    assert dump_is_on(environ) is on
    assert template_says(environ) is on


@pytest.mark.parametrize("written", NEITHER)
def test_anything_else_is_refused_in_one_sentence(written: str) -> None:
    sentence = function_says({"DUMP_ON": written})
    assert isinstance(sentence, str)
    assert sentence.startswith(f"DUMP_ON is {written!r}: set it to 1")
    assert template_says({"DUMP_ON": written}) == sentence


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=6))
def test_they_agree_on_every_text(written: str) -> None:
    assert function_says({"DUMP_ON": written}) == template_says({"DUMP_ON": written})
