"""A function that is watched is the same function, whatever it takes; afterwards it is as it was."""

import inspect
import pickle
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from probe_patch.runtime.capture.functions import trampolines
from probe_patch.runtime.capture.functions.call_sites import Arguments
from probe_patch.runtime.capture.functions.trampolines import can_be_watched


def watch(function: Any, watcher: trampolines.Watcher) -> None:
    trampolines.watch(function, watcher)


def unwatch(function: Any, watcher: trampolines.Watcher) -> bool:
    return trampolines.unwatch(function, watcher)


class Notes:
    """A watcher that notes what it is told, under its name, in a list that several can share."""

    def __init__(self, notes: list[Any], name: str = "") -> None:
        self.notes, self.name = notes, name

    def begin(self, arguments: Arguments) -> Any:
        self.notes.append((f"{self.name}begin", arguments.args, arguments.kwargs))
        return self

    def end(self, call: Any, result: Any) -> None:
        assert call is self
        self.notes.append((f"{self.name}end", result))

    def abandon(self, call: Any) -> None:
        self.notes.append((f"{self.name}abandon",))


def plain(x: Any, y: Any = 2) -> Any:
    return (x, y)


def everything(a: Any, b: Any = 2, /, c: Any = 3, *rest: Any, d: Any, e: Any = 5, **more: Any) -> Any:
    return (a, b, c, rest, d, e, more)


def keyword_only(*, x: Any = 1) -> Any:
    return x


def closed_over() -> Any:
    first, second = [1], [2]

    def inner(x: Any, *, y: Any = 3) -> Any:
        second.append(x)
        return (first, second, lambda: x, y)

    return inner


class Owner:
    def method(self, x: Any = 1) -> Any:
        return (type(self), x)


def fails(x: Any) -> Any:
    raise KeyError(x)


CALLS: dict[str, tuple[Any, Callable[[Any], Any], Arguments]] = {
    "by position": (plain, lambda f: f(1, 3), Arguments((1, 3), {})),
    "by keyword": (plain, lambda f: f(y=3, x=1), Arguments((), {"y": 3, "x": 1})),
    "defaults": (plain, lambda f: f(1), Arguments((1,), {})),
    "unpacked": (plain, lambda f: f(*(1, 5)), Arguments((1, 5), {})),
    "all kinds": (
        everything,
        lambda f: f(1, 2, 9, 10, d=4, z=7),
        Arguments((1, 2, 9, 10), {"d": 4, "e": 5, "z": 7}),
    ),
    "keyword-only": (keyword_only, lambda f: f(x=4), Arguments((), {"x": 4})),
    "a method": (Owner.method, lambda _: Owner().method(7)[1], Arguments((), {})),
    "a closure": (closed_over(), lambda f: f(1, y=2)[:2], Arguments((1,), {"y": 2})),
}


@pytest.mark.parametrize("example", CALLS)
def test_it_gives_what_it_gave_and_the_watcher_is_told(example: str) -> None:
    function, call, expected = CALLS[example]
    before = (function.__code__, function.__defaults__, function.__kwdefaults__, dict(vars(function)))
    signature = inspect.signature(function)
    result = call(function)
    notes: list[Any] = []
    watcher = Notes(notes)
    watch(function, watcher)
    try:
        assert inspect.signature(function) == signature
        assert call(function) == result
    finally:
        assert unwatch(function, watcher)
    told = [note[1:] for note in notes if note[0] == "begin"]
    if example == "a method":
        ((told_self, *told_args), told_kwargs) = told[0]
        assert (type(told_self), told_args, told_kwargs) == (Owner, [7], {})
    else:
        assert told == [(expected.args, expected.kwargs)]
    assert before == (function.__code__, function.__defaults__, function.__kwdefaults__, dict(vars(function)))
    assert call(function) == result
    assert len(notes) == 2


@pytest.mark.parametrize("wrong", [lambda f: f(), lambda f: f(1, 2, 3), lambda f: f(1, q=2)])
def test_a_wrong_call_is_refused_in_the_same_words(wrong: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError) as before:
        wrong(plain)
    watcher = Notes([])
    watch(plain, watcher)
    try:
        with pytest.raises(TypeError) as during:
            wrong(plain)
    finally:
        unwatch(plain, watcher)
    assert str(during.value) == str(before.value)
    assert watcher.notes == []


def test_what_it_raises_comes_through() -> None:
    watcher = Notes([])
    watch(fails, watcher)
    try:
        with pytest.raises(KeyError, match="3"):
            fails(3)
    finally:
        unwatch(fails, watcher)
    assert [note[0] for note in watcher.notes] == ["begin", "abandon"]


@pytest.mark.parametrize("first_to_go", [0, 1])
def test_watchers_may_go_in_any_order(first_to_go: int) -> None:
    notes: list[Any] = []
    code = plain.__code__
    watchers = [Notes(notes, "a "), Notes(notes, "b ")]
    for watcher in watchers:
        watch(plain, watcher)
    plain(1)
    assert [note[0] for note in notes] == ["a begin", "b begin", "b end", "a end"]
    notes.clear()
    unwatch(plain, watchers.pop(first_to_go))
    plain(1)
    assert [note[0] for note in notes] == [f"{watchers[0].name}begin", f"{watchers[0].name}end"]
    unwatch(plain, watchers[0])
    assert plain.__code__ is code


def test_aliases_and_pickles_are_watched_too() -> None:
    watcher = Notes([])
    alias = plain
    pickled = pickle.dumps(plain)
    watch(plain, watcher)
    try:
        assert pickle.dumps(plain) == pickled
        assert pickle.loads(pickled) is alias
        alias(1)
    finally:
        unwatch(plain, watcher)
    assert [note[0] for note in watcher.notes] == ["begin", "end"]


def test_what_another_has_exchanged_meanwhile_is_left_to_it() -> None:
    code = plain.__code__
    watcher = Notes([])
    watch(plain, watcher)
    theirs = (lambda x, y=2: "theirs").__code__
    plain.__code__ = theirs
    try:
        assert not unwatch(plain, watcher)
        assert plain.__code__ is theirs
    finally:
        plain.__code__ = code
    watch(plain, watcher)
    assert plain(1) == (1, 2)
    assert unwatch(plain, watcher)
    assert plain.__code__ is code


def test_code_is_made_once_so_that_compiled_code_stays_valid() -> None:
    codes = set()
    for _ in range(3):
        watcher = Notes([])
        watch(plain, watcher)
        codes.add(plain.__code__)
        unwatch(plain, watcher)
    assert len(codes) == 1


def test_calls_go_on_while_watching_begins_and_ends() -> None:
    is_over = threading.Event()
    failures: list[BaseException] = []

    def calls() -> None:
        try:
            while not is_over.is_set():
                assert plain(1) == (1, 2)
        except BaseException as error:
            failures.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=calls) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(300):
        watcher = Notes([])
        watch(plain, watcher)
        unwatch(plain, watcher)
    is_over.set()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(interval)
    assert failures == []


def generates() -> Any:
    yield 1


async def awaits() -> None: ...


@pytest.mark.parametrize(
    ("function", "possible"), [(plain, True), (generates, False), (awaits, False), (len, False), (Owner, False)]
)
def test_only_python_functions_that_run_to_their_end_are_watched(function: object, possible: bool) -> None:
    assert can_be_watched(function) is possible
