"""Operators are told from methods by the caller's bytecode. Needs no torch: what an operator calls is a stand-in."""

import sys
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from probe_patch.runtime.capture.functions.operators import operator_at

BINARY = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "truediv",
    "//": "floordiv",
    "%": "mod",
    "**": "pow",
    "@": "matmul",
    "&": "and",
    "|": "or",
    "^": "xor",
    "<<": "lshift",
    ">>": "rshift",
}
COMPARISONS = {"<": "lt", "<=": "le", "==": "eq", "!=": "ne", ">": "gt", ">=": "ge"}

EXPRESSIONS = {
    **{f"x {symbol} 3": f"__{stem}__" for symbol, stem in (BINARY | COMPARISONS).items()},
    **{f"3 {symbol} x": f"__r{stem}__" for symbol, stem in BINARY.items()},
    "3 * hidden(x, [3][0], *(3,))": "__rmul__",
    "three * x": "__mul__",
    "three * 3 * x": "__mul__",
    "3 * (x if three else 3)": "__mul__",
    "x * 3": "__mul__",
    "[3 * part for part in (x,)][0]": "__rmul__",
    "bool if x < 3 else int": "__lt__",
    "[x + part for part in (1,)]": "__add__",
    "x.add(3)": None,
    "x.__add__(3)": None,
    "sum([x], 3)": None,
    "-x": None,
    "x[3]": None,
    "3 in x": None,
    "add(x, 3)": None,
    "add(x, 3) - 1": None,
}


class Notes:
    """An operand whose every method notes by which operator it was called."""

    def __init__(self) -> None:
        self.seen: list[str | None] = []

    def note(self, *_: object) -> int:
        self.seen.append(operator_at(sys._getframe(1), Notes.note))
        return 0

    add = __neg__ = __getitem__ = __contains__ = note


for method in [f"__{kind}{stem}__" for stem in BINARY.values() for kind in ("", "r", "i")]:
    setattr(Notes, method, Notes.note)
for stem in COMPARISONS.values():
    setattr(Notes, f"__{stem}__", Notes.note)


class Box(dict[str, object]):
    def __init__(self, hidden: Callable[..., object], x: object) -> None:
        super().__init__(x=x, three=3)
        self.hidden = hidden


def seen_by(source: str, mode: str) -> list[str | None]:
    x = Notes()

    def hidden(x: object = None, *_: object, **__: object) -> object:
        return x

    box = SimpleNamespace(inner=Box(hidden, x))
    names = {"x": x, "three": 3, "hidden": hidden, "box": box, "add": lambda x, y: x.note(y)}
    exec(compile(source, "example", mode), names)
    return x.seen


@pytest.mark.parametrize(("expression", "operator"), EXPRESSIONS.items())
def test_an_operator_is_named_and_a_call_is_not(expression: str, operator: str | None) -> None:
    assert seen_by(f"result = {expression}", "exec") == [operator]


OPERANDS = (
    *("x", "(x)", "hidden(x)", "hidden(x, 3)", "hidden(x, 3, key=3)", "hidden(x, key=[3, 4][0])", "[3, x][1]"),
    *("hidden() or x", "(lambda: x)()", "{3: x}[3]", "(3, x)[1]", "box.inner.hidden(x, 3)", "box.inner['x']"),
    *("[x for _ in (3,)][0]", "hidden(*(x, 3))", "hidden(x, **{'key': 3})", "[3, x][-1]", "(3, 4, x)[hidden(2)]"),
    *(
        "box.inner.hidden(hidden(x, 3), hidden(3, 3), key=hidden(3))",
        "hidden(x, f'{three}')",
        "[*(3, x)][1]",
        "(x, 3)[:1][0]",
    ),
)
NO_TENSORS = ("three", "hidden(3)", "[3][0]", "box.inner['three']", "-three")


@pytest.mark.parametrize("right", OPERANDS)
@pytest.mark.parametrize(("left", "operator"), [("3", "__rmul__"), ("(2 + 1)", "__rmul__")])
def test_a_constant_on_the_left_makes_it_the_right_operands(left: str, operator: str, right: str) -> None:
    # Where the right operand chooses between several, nothing is sure.
    jumps = " or " in right or " for " in right
    assert seen_by(f"result = {left} * ({right})", "exec") in ([[operator], ["__mul__"]] if jumps else [[operator]])


@pytest.mark.parametrize("right", (*OPERANDS, "3"))
@pytest.mark.parametrize("left", OPERANDS)
def test_of_two_tensors_or_with_a_constant_on_the_right_it_is_the_left_operands(left: str, right: str) -> None:
    assert seen_by(f"result = ({left}) * ({right})", "exec") == ["__mul__"]


@pytest.mark.parametrize("right", OPERANDS)
@pytest.mark.parametrize("left", NO_TENSORS)
def test_what_is_no_constant_on_the_left_leaves_the_name_as_it_is(left: str, right: str) -> None:
    assert seen_by(f"result = {left} * ({right})", "exec") == ["__mul__"]


@pytest.mark.parametrize(("symbol", "stem"), BINARY.items())
def test_an_operator_that_assigns(symbol: str, stem: str) -> None:
    assert seen_by(f"x {symbol}= 3", "exec") == [f"__i{stem}__"]


def test_long_jumps_and_many_names_do_not_shift_the_sites() -> None:
    many = "\n".join(f"name{number} = {number}.5" for number in range(400))
    body = "\n".join(
        ["for part in (1, 2):", "    x + part", *(f"    name{number}" for number in range(400)), "    x - 1"]
    )
    assert seen_by(f"{many}\n{body}", "exec") == ["__add__", "__sub__"] * 2


def test_code_that_is_gone_lends_its_identity_to_none() -> None:
    x = Notes()
    for source in ["x + 1", "x - 1", "x.add(1)", "x * 1"] * 50:
        exec(compile(source, "example", "exec"), {"x": x})
    assert x.seen == ["__add__", "__sub__", None, "__mul__"] * 50
