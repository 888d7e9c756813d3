"""Which arguments a caller passed, and how, is read off its bytecode. Needs no torch."""

import functools
import gc
import sys
import weakref
from typing import Any

import pytest

from probe_patch.runtime.capture.functions.call_sites import Arguments, as_passed, call_at, without_defaults


def told(function: Any) -> Arguments | None:
    """To be called by ``function`` first thing: what its caller passed to it."""
    own = sys._getframe(1)
    return as_passed(function, own.f_locals, call_at(own.f_back))


def f(x: int, y: int = 2, *, z: int = 3) -> Arguments | None:
    return told(f)


def only(x: int, /, y: int = 2) -> Arguments | None:
    return told(only)


def any_number(*args: int, **kwargs: int) -> Arguments | None:
    return told(any_number)


class Owner:
    def method(self, y: int, z: int = 3) -> Arguments | None:
        passed = told(Owner.method)
        return None if passed is None else Arguments(passed.args[1:], passed.kwargs)


o = Owner()
one, two, three = 1, 2, 3

PASSED = {
    "f(one)": Arguments((1,), {}),
    "f(one, 2)": Arguments((1, 2), {}),
    "f(one, (5,))": Arguments((1, (5,)), {}),
    "f(('y',))": Arguments((("y",),), {}),
    "f(('y', 'z'), z=('y',))": Arguments((("y", "z"),), {"z": ("y",)}),
    "o.method(('z',))": Arguments((("z",),), {}),
    "f(one, y=2)": Arguments((1,), {"y": 2}),
    "f(x=one, z=7)": Arguments((), {"x": 1, "z": 7}),
    "f(z=7, x=one)": Arguments((), {"z": 7, "x": 1}),
    "f(f and 1, y=[4, 5][0], z=f and 3)": Arguments((1,), {"y": 4, "z": 3}),
    "[f(part, z=part) for part in (5,)][0]": Arguments((5,), {"z": 5}),
    "only(one)": Arguments((1,), {}),
    "only(one, y=9)": Arguments((1,), {"y": 9}),
    "o.method(4)": Arguments((4,), {}),
    "o.method(y=4)": Arguments((), {"y": 4}),
    "o.method(4, 5)": Arguments((4, 5), {}),
    "Owner.method(o, 4)": Arguments((4,), {}),
    "Owner.method(o, 4, z=5)": Arguments((4,), {"z": 5}),
    # Between these and their caller is code that tells nothing.
    "f(*[one], **{'y': 4})": None,
    "functools.partial(f, one)(5)": None,
    "functools.partial(f, y=7)(one)": None,
    "list(map(f, [one]))[0]": Arguments((1,), {}),
    "any_number(one, y=2)": None,
}


@pytest.mark.parametrize(("source", "expected"), PASSED.items())
def test_what_was_passed(source: str, expected: Arguments | None) -> None:
    found: dict[str, Any] = dict(globals())
    exec(compile(f"result = {source}", "example", "exec"), found)
    assert found["result"] == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"x": 1, "y": 2, "z": 3}, Arguments((1,), {})),
        ({"x": 1, "y": 4, "z": 3}, Arguments((1, 4), {})),
        ({"x": 1, "y": 2, "z": 4}, Arguments((1,), {"z": 4})),
        ({"x": 1, "y": 4, "z": 4}, Arguments((1, 4), {"z": 4})),
    ],
)
def test_where_nothing_tells_defaults_count_as_not_passed(values: dict[str, int], expected: Arguments) -> None:
    assert without_defaults(f, values) == expected


def test_code_that_is_gone_lends_its_identity_to_none() -> None:
    found: dict[str, Any] = {"f": f}
    for source, expected in [("f(1)", ((1,), {})), ("f(x=1)", ((), {"x": 1})), ("f(1, 2)", ((1, 2), {}))] * 30:
        exec(compile(f"result = {source}", "example", "exec"), found)
        assert (found["result"].args, found["result"].kwargs) == expected


def test_code_is_not_kept_alive() -> None:
    found: dict[str, Any] = {"f": f}
    exec("def calls():\n    return f(1)", found)
    calls = found.pop("calls")
    assert calls() == Arguments((1,), {})
    code = weakref.ref(calls.__code__)
    del calls
    gc.collect()
    assert code() is None


def test_long_code_does_not_shift_the_sites() -> None:
    source = "\n".join(f"name{number} = {number}.5" for number in range(400)) + "\nresult = f(one, z=name399)"
    found: dict[str, Any] = {"f": f, "one": 1}
    exec(compile(source, "example", "exec"), found)
    assert found["result"] == Arguments((1,), {"z": 399.5})


assert functools  # it is the examples that use it
