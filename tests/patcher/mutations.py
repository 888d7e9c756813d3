"""Ways in which people's copies of a file differ from ours, as hypothesis strategies.

A harmless mutation keeps the meaning, so the file must be patched. A harmful one may break an anchor or the file
itself, so it may be refused, but never patched wrongly.
"""

import re
from collections.abc import Callable
from typing import TypeAlias

from hypothesis import strategies as st

Mutation: TypeAlias = Callable[[str], str]
Texts: TypeAlias = st.SearchStrategy[str]

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
_METHOD = re.compile(r"(?m)^    (?=def )")
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


def _decorate(at: int, decorator: str) -> Mutation:
    def mutate(source: str) -> str:
        places = [match.start() for match in _METHOD.finditer(source)]
        place = places[at % len(places)]
        return f"{source[:place]}    {decorator}\n{source[place:]}"

    return mutate


# What may happen to any file that has classes with methods.
ANYWHERE: tuple[st.SearchStrategy[Mutation], ...] = (
    st.builds(_comment_line, st.integers(0, 200), _COMMENTS, _SPACE.filter(lambda space: "\x0c" not in space)),
    st.builds(_blank_line, st.integers(0, 200), _SPACE),
    st.builds(_trailing_comment, st.integers(0, 200), _COMMENTS),
    st.builds(_continuation, st.integers(0, 200), _SPACE),
    st.builds(_decorate, st.integers(0, 20), _DECORATORS),
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


def variants(source: str, harmless: st.SearchStrategy[list[Mutation]]) -> tuple[Texts, Texts]:
    """``source`` after harmless mutations, and after some harmful ones too."""
    harmful = st.tuples(harmless, st.lists(HARMFUL, min_size=1, max_size=3))
    return harmless.map(lambda each: _mutated(source, each)), harmful.map(
        lambda both: _mutated(source, [*both[0], *both[1]])
    )


def _mutated(source: str, mutations: list[Mutation]) -> str:
    for mutation in mutations:
        source = mutation(source)
    return source
