"""Ways in which people's copies of the actor differ from ours, as hypothesis strategies.

A harmless mutation keeps the meaning, so the file must be patched. A harmful one may break an anchor or the file
itself, so it may be refused, but never patched wrongly.
"""

import re
from collections.abc import Callable
from typing import TypeAlias

from hypothesis import strategies as st

from tests.patcher.small_actor import SMALL_ACTOR

Mutation: TypeAlias = Callable[[str], str]

_COMMENTS = st.sampled_from(
    [
        "# a note",
        '# store_prefix="ref_"',
        "#",
        '# with timer("actor_train"): train()',
        "# self.compute_log_prob(",
        "#: ü 雪",
    ]
)
_SPACE = st.sampled_from(["", " ", "    ", "\t", "\x0c", "  \t"])
_LOCALS = ("rollout_data", "data_iterator", "num_microbatches", "rollout_id")
_METHOD = re.compile(r"(?m)^    (?=def )")
_STATEMENTS = st.sampled_from(
    ["unused = 1", "self.args = self.args", 'os.environ["A"] = "1"', "del_me: int = 2", "..."]
)
_DECORATORS = st.sampled_from(
    ["@timer", "@timer  # timed", "@with_defer(lambda: None)", "@(lambda function: function)"]
)


def _comment_line(at: int, comment: str, space: str) -> Mutation:
    return lambda source: _insert_line(source, at, space + comment)


def _blank_line(at: int, space: str) -> Mutation:
    return lambda source: _insert_line(source, at, space)


def _insert_line(source: str, at: int, line: str) -> str:
    lines = source.split("\n")
    at %= len(lines)
    if lines[at - 1].endswith("\\"):
        return source
    return "\n".join([*lines[:at], line, *lines[at:]])


def _trailing_comment(at: int, comment: str) -> Mutation:
    def mutate(source: str) -> str:
        lines = source.split("\n")
        at_line = at % len(lines)
        if lines[at_line] and not lines[at_line].endswith("\\"):
            lines[at_line] += "  " + comment
        return "\n".join(lines)

    return mutate


def _continuation(at: int, space: str) -> Mutation:
    """Break a line after a comma or an ``=``, with a backslash."""

    def mutate(source: str) -> str:
        places = [match.end() for match in re.finditer(r"(?m)^[^#\n]*?(?:, | = )(?=[^#\n\"]*$)", source)]
        if not places:
            return source
        place = places[at % len(places)]
        return f"{source[:place]}\\\n{space.replace(chr(12), ' ')}{source[place:]}"

    return mutate


def _rename(name: str, new: str) -> Mutation:
    """Rename a local of train_actor, its keyword uses included."""

    def mutate(source: str) -> str:
        head, marker, body = source.partition("    def train_actor")
        return head + marker + re.sub(rf"\b{name}\b", new, body)

    return mutate


def _decorate(at: int, decorator: str) -> Mutation:
    def mutate(source: str) -> str:
        places = [match.start() for match in _METHOD.finditer(source)]
        place = places[at % len(places)]
        return f"{source[:place]}    {decorator}\n{source[place:]}"

    return mutate


def _unrelated_statement(at: int, statement: str) -> Mutation:
    """Put a statement before another one of the same block."""

    def mutate(source: str) -> str:
        places = list(re.finditer(r"(?m)^( {8,})(?=self\.|rollout_data\.update\(|with |if )", source))
        place = places[at % len(places)]
        return f"{source[: place.start()]}{place[1]}{statement}\n{source[place.start() :]}"

    return mutate


def _wrap(opening: str, closing: str) -> Mutation:
    """Put the whole body of the timed part one level deeper."""

    def mutate(source: str) -> str:
        head, marker, tail = source.partition('            with timer("actor_train"):\n')
        deeper = "".join(f"    {line}\n" if line else "\n" for line in (marker + tail).rstrip("\n").split("\n"))
        return f"{head}            {opening}\n{deeper}" + (f"            {closing}\n" if closing else "")

    return mutate


def _swap_methods(source: str) -> str:
    """``train`` and ``compute_log_prob`` in the other order."""
    start, middle = source.index("    def compute_log_prob"), source.index("    def train(")
    end = source.index("    def train_actor")
    between = source[end - 200 : end]
    decorators = re.search(r"(?:    @[^\n]*\n)+$", between)
    end -= len(decorators[0]) if decorators else 0
    if "@" in source[start - 60 : start] or "@" in source[middle - 60 : middle]:
        return source
    return source[:start] + source[middle:end] + source[start:middle] + source[end:]


def _drop_docstring(source: str) -> str:
    return source.removeprefix('"""A small actor."""\n')


def _drop_future(source: str) -> str:
    return source.replace("from __future__ import annotations\n\n", "", 1)


HARMLESS: st.SearchStrategy[list[Mutation]] = st.lists(
    st.one_of(
        st.builds(_comment_line, st.integers(0, 200), _COMMENTS, _SPACE.filter(lambda space: "\x0c" not in space)),
        st.builds(_blank_line, st.integers(0, 200), _SPACE),
        st.builds(_trailing_comment, st.integers(0, 200), _COMMENTS),
        st.builds(_continuation, st.integers(0, 200), _SPACE),
        st.builds(_rename, st.sampled_from(_LOCALS), st.sampled_from(["x", "данные", "ref_", "batch_2"])),
        st.builds(_decorate, st.integers(0, 20), _DECORATORS),
        st.builds(_unrelated_statement, st.integers(0, 200), _STATEMENTS),
        st.builds(
            _wrap,
            st.sampled_from(["if True:", "while True:", "with inverse_timer('x'):", "for _ in (1,):"]),
            st.just(""),
        ).map(lambda wrap: lambda source: wrap(source) if "while" not in wrap("") else source),
        st.just(_swap_methods),
        st.just(_drop_docstring),
        st.just(_drop_future),
    ),
    max_size=8,
)

HARMFUL: st.SearchStrategy[Mutation] = st.one_of(
    st.builds(
        lambda at, length: lambda source: source[: at % len(source)] + source[at % len(source) + length :],
        st.integers(0, 4000),
        st.integers(1, 60),
    ),
    st.builds(
        lambda at, text: lambda source: source[: at % len(source)] + text + source[at % len(source) :],
        st.integers(0, 4000),
        st.sampled_from(
            [" ", "\n", "\\\n", '"', "'''", "(", ")", ";", "#", "\t", "lambda: ", "\0", "\x0c", "await ", "not ", "\r"]
        ),
    ),
    st.builds(
        lambda first, second: lambda source: _swap_lines(source, first, second),
        st.integers(0, 200),
        st.integers(0, 200),
    ),
    st.builds(lambda at: lambda source: _repeat_line(source, at), st.integers(0, 200)),
)


def _swap_lines(source: str, first: int, second: int) -> str:
    lines = source.split("\n")
    first, second = first % len(lines), second % len(lines)
    lines[first], lines[second] = lines[second], lines[first]
    return "\n".join(lines)


def _repeat_line(source: str, at: int) -> str:
    lines = source.split("\n")
    lines.insert(at % len(lines), lines[at % len(lines)])
    return "\n".join(lines)


def encoded(source: str, newline: str, tabs: bool, bom: bool, cookie: str, final_newline: bool) -> bytes:
    """The last mile: how the text stands on disk."""
    if not final_newline:
        source = source.rstrip("\n")
    if tabs:
        source = re.sub(r"(?m)^(?: {4})+", lambda spaces: "\t" * (len(spaces[0]) // 4), source)
    if cookie and not bom:
        source = f"# -*- coding: {cookie} -*-\n{source}"
    data = source.replace("\n", newline).encode(cookie if cookie and not bom else "utf-8", "replace")
    return (b"\xef\xbb\xbf" if bom else b"") + data


def on_disk(text: st.SearchStrategy[str]) -> st.SearchStrategy[bytes]:
    return st.builds(
        encoded,
        text,
        st.sampled_from(["\n", "\n", "\r\n", "\r"]),
        st.booleans(),
        st.booleans(),
        st.sampled_from(["", "", "latin-1", "utf-8", "shift_jis", "gb18030", "cp1252"]),
        st.booleans(),
    )


def _mutated(mutations: list[Mutation]) -> str:
    source = SMALL_ACTOR
    for mutation in mutations:
        source = mutation(source)
    return source


harmless_texts = HARMLESS.map(_mutated)
harmful_texts = st.tuples(HARMLESS, st.lists(HARMFUL, min_size=1, max_size=3)).map(
    lambda both: _mutated([*both[0], *both[1]])
)
