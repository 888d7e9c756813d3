"""Which kind of file it is: by what it defines, and by its name where that says nothing."""

import ast

import pytest

from probe_patch.config import Side
from probe_patch.patcher.targets.choice import kind_of

KINDS: list[tuple[str, str, Side]] = [
    ("class MegatronTrainRayActor: ...", "actor.py", "train"),
    ("class ModelRunner: ...", "anything.py", "rollout"),
    ("class Mine(ModelRunner): ...", "anything.py", "rollout"),
    ("class GPUModelRunner: ...", "anything.py", "rollout"),
    ("class ModelRunner: ...\nclass MegatronTrainRayActor: ...", "actor.py", "train"),
    ("class MegatronTrainRayActor: ...", "a/model_runner.py", "train"),
    ("x = 1", "a/model_runner.py", "rollout"),
    ("x = 1", "a/actor.py", "train"),
    ("def f():\n    class ModelRunner: ...", "a.py", "train"),
]


@pytest.mark.parametrize(("source", "where", "side"), KINDS)
def test_kind(source: str, where: str, side: Side) -> None:
    assert kind_of(ast.parse(source), where).side == side


@pytest.mark.parametrize(("where", "side"), [("a/model_runner.py", "rollout"), ("a/actor.py", "train")])
def test_by_its_name_where_it_does_not_parse(where: str, side: Side) -> None:
    assert kind_of(None, where).side == side
