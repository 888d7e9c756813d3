"""Ways in which people's copies of model_runner.py differ from ours: the small runner, mutated."""

import re

from hypothesis import strategies as st

from tests.patcher.mutations import ANYWHERE, Mutation, variants
from tests.patcher.sglang.small_runner import SMALL_RUNNER

_PARAMETERS = ("forward_batch", "model_config", "gpu_id", "is_draft_worker", "skip_attn_backend_init")
_HEAD = "class ModelRunner:\n"


def _rename(name: str, new: str) -> Mutation:
    return lambda source: re.sub(rf"\b{name}\b", new, source)


def _base(bases: str) -> Mutation:
    return lambda source: source.replace(_HEAD, f"class ModelRunner({bases}):\n")


def _unrelated_statement(at: int, statement: str) -> Mutation:
    """Put a statement before another one of the same block."""

    def mutate(source: str) -> str:
        places = list(re.finditer(r"(?m)^( {8,})(?=self\.|return |if )", source))
        place = places[at % len(places)]
        return f"{source[: place.start()]}{place[1]}{statement}\n{source[place.start() :]}"

    return mutate


def _another_class(before: bool) -> Mutation:
    """A class that has a forward too."""
    other = "class Other:\n    def forward(self, forward_batch):\n        return None\n\n\n"
    return lambda source: source.replace(_HEAD, other + _HEAD) if before else f"{source}\n\n{other.rstrip()}\n"


def _forward_first(source: str) -> str:
    """``forward`` before every other method, unless it is, something decorates it or another class has one too."""
    head, marker, forward = source.partition("    def forward(")
    if re.search(r"(?m)^ +@[^\n]*\n\Z", head) or "class Other" in source or "    def __init__(" not in head:
        return source
    return head.replace("    def __init__(", f"{marker}{forward.rstrip()}\n\n    def __init__(", 1).rstrip() + "\n"


def _drop_docstring(source: str) -> str:
    return source.removeprefix('"""A small model runner."""\n')


def _drop_future(source: str) -> str:
    return source.replace("from __future__ import annotations\n\n", "", 1)


HARMLESS: st.SearchStrategy[list[Mutation]] = st.lists(
    st.one_of(
        *ANYWHERE,
        st.builds(_rename, st.sampled_from(_PARAMETERS), st.sampled_from(["x", "данные", "batch_2"])),
        st.builds(_base, st.sampled_from(["object", "Output", "Output, metaclass=type"])),
        st.builds(_unrelated_statement, st.integers(0, 200), st.sampled_from(["unused = 1", "...", "del_me: int = 2"])),
        st.builds(_another_class, st.booleans()),
        st.just(_forward_first),
        st.just(_drop_docstring),
        st.just(_drop_future),
    ),
    max_size=8,
)

harmless_texts, harmful_texts = variants(SMALL_RUNNER, HARMLESS)
