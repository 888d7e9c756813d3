"""Ways in which people's copies of slime's actor differ from ours: the small actor, mutated."""

import re

from hypothesis import strategies as st

from tests.patcher.mutations import ANYWHERE, Mutation, variants
from tests.patcher.small_actor import SMALL_ACTOR

_LOCALS = ("rollout_data", "data_iterator", "num_microbatches", "rollout_id")
_STATEMENTS = st.sampled_from(
    ["unused = 1", "self.args = self.args", 'os.environ["A"] = "1"', "del_me: int = 2", "..."]
)


def _rename(name: str, new: str) -> Mutation:
    """Rename a local of train_actor, its keyword uses included."""

    def mutate(source: str) -> str:
        head, marker, body = source.partition("    def train_actor")
        return head + marker + re.sub(rf"\b{name}\b", new, body)

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
        *ANYWHERE,
        st.builds(_rename, st.sampled_from(_LOCALS), st.sampled_from(["x", "данные", "ref_", "batch_2"])),
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

harmless_texts, harmful_texts = variants(SMALL_ACTOR, HARMLESS)
