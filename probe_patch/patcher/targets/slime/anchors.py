"""The five places in slime's actor that the patch hangs on. Each must match exactly once.

=========  ====================================================================================================
class      top level, named ``*TrainRayActor``, with a method ``init`` that takes ``role``
rollout    its method ``train_actor``, or ``train`` where that was not split out yet (before 2025-09-17)
ref        the statement in it that holds ``self.compute_log_prob(…, store_prefix="ref_")``
old        the same with ``store_prefix=""``, or without one
actor      the ``with`` whose item is ``timer("actor_train")`` and whose body calls ``train(…)``
=========  ====================================================================================================

``teacher_`` and other prefixes are phases of slime's own and are left alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import libcst as cst
import libcst.matchers as m

from probe_patch.dump_format import Phase
from probe_patch.patcher.syntax import Source
from probe_patch.patcher.targets.anchoring import (
    exactly_one,
    methods,
    plain_method,
    positional_parameters,
    refused_at,
    top_level_classes,
)
from probe_patch.patcher.targets.slime.surroundings import missed_stop, whole_line
from probe_patch.patcher.tree import walk, walk_own_scope

_LOG_PROB_CALL = m.Call(func=m.Attribute(value=m.Name("self"), attr=m.Name("compute_log_prob")))
_TRAIN_CALL = m.Call(func=m.Name("train") | m.Attribute(value=m.Name("megatron_utils"), attr=m.Name("train")))
_PREFIXES: dict[Phase, str] = {"ref": "ref_", "old": ""}


@dataclass(frozen=True)
class Anchors:
    """Where the patch goes.

    Attributes:
        init: the method that builds the model.
        rollout: the method that trains on one rollout.
        phases: for each phase asked for, the statement to bracket.
    """

    init: cst.FunctionDef
    rollout: cst.FunctionDef
    phases: Mapping[Phase, cst.SimpleStatementLine | cst.With]


def find_anchors(source: Source, phases: Sequence[Phase]) -> Anchors:
    """Find every anchor that ``phases`` need.

    Raises:
        AnchorMissing: one matched no place or several; the sentence names it and shows the nearest candidates.
    """
    actor_class = _find_class(source)
    init = plain_method(source, actor_class, "init")
    _require_role(source, init)
    own_methods = {method.name.value for method in methods(actor_class)}
    rollout = plain_method(source, actor_class, "train_actor" if "train_actor" in own_methods else "train")
    log_prob = next((method for method in methods(actor_class) if method.name.value == "compute_log_prob"), None)
    statements: dict[Phase, cst.SimpleStatementLine | cst.With] = {
        phase: _find_actor_train(source, rollout)
        if phase == "actor"
        else _find_log_prob(source, rollout, phase, _prefix_position(log_prob))
        for phase in phases
    }
    return Anchors(init, rollout, statements)


def _find_class(source: Source) -> cst.ClassDef:
    classes = top_level_classes(source)
    found = [
        node
        for node in classes
        if node.name.value.endswith("TrainRayActor") and any(method.name.value == "init" for method in methods(node))
    ]
    return exactly_one(source, found, "a top-level class named *TrainRayActor with a method init", classes)


def _require_role(source: Source, init: cst.FunctionDef) -> None:
    keyword_only = [parameter.name.value for parameter in init.params.kwonly_params]
    if "role" not in [*positional_parameters(init), *keyword_only]:
        raise refused_at(source, init, "init takes no role, so actor and critic cannot be told apart")


def _find_log_prob(
    source: Source, rollout: cst.FunctionDef, phase: Phase, position: int | None
) -> cst.SimpleStatementLine:
    calls = [node for node in walk(rollout.body) if isinstance(node, cst.Call) and m.matches(node, _LOG_PROB_CALL)]
    found = [call for call in calls if _store_prefix(call, position) == _PREFIXES[phase]]
    what = f'a call self.compute_log_prob(…, store_prefix="{_PREFIXES[phase]}") in {rollout.name.value} (phase {phase})'
    call = exactly_one(source, found, what, calls)
    statement = whole_line(source, rollout, call)
    if statement is None:
        raise refused_at(
            source, call, "the call shares its line with a compound statement; put it on a line of its own"
        )
    sharing = [other for other in calls if other is not call and statement in source.around(other)]
    if sharing:
        raise refused_at(
            source, statement, f"the statement of phase {phase} also computes other log-probs, which would mix"
        )
    _require_its_stop(source, rollout, call, phase)
    return statement


def _require_its_stop(source: Source, rollout: cst.FunctionDef, ran: cst.Call | cst.With, phase: Phase) -> None:
    reason = missed_stop(source, rollout, ran)
    if reason is not None:
        raise refused_at(source, ran, f"the statement of phase {phase} {reason}")


def _find_actor_train(source: Source, rollout: cst.FunctionDef) -> cst.With:
    timed = [node for node in walk_own_scope(rollout.body) if isinstance(node, cst.With) and _times_actor_train(node)]
    found = [node for node in timed if any(m.matches(inner, _TRAIN_CALL) for inner in walk_own_scope(node.body))]
    what = f'a with timer("actor_train"): … train(…) in {rollout.name.value} (phase actor)'
    candidates: Sequence[cst.CSTNode] = timed or [
        node for node in walk(rollout.body) if isinstance(node, cst.Call) and m.matches(node, _TRAIN_CALL)
    ]
    node = exactly_one(source, found, what, candidates)
    if any(m.matches(inner, _LOG_PROB_CALL) for inner in walk(node)):
        raise refused_at(source, node, "the block timed as actor_train also computes log-probs, which would mix")
    _require_its_stop(source, rollout, node, "actor")
    return node


def _times_actor_train(node: cst.With) -> bool:
    return any(
        isinstance(item.item, cst.Call)
        and m.matches(item.item.func, m.Name("timer") | m.Attribute(attr=m.Name("timer")))
        and any(_literal(argument.value) == "actor_train" for argument in item.item.args)
        for item in node.items
    )


def _prefix_position(log_prob: cst.FunctionDef | None) -> int | None:
    """The index of ``store_prefix`` among the positional arguments of a call (``self`` not counted)."""
    if log_prob is None:
        return None
    names = positional_parameters(log_prob)
    return names.index("store_prefix") - 1 if "store_prefix" in names else None


def _store_prefix(call: cst.Call, position: int | None) -> str | None:
    """The prefix a call passes; its default ``""`` where it passes none; None where only a run could tell."""
    if any(argument.star for argument in call.args):
        return None
    positional = [argument for argument in call.args if argument.keyword is None]
    for argument in call.args:
        if argument.keyword is not None and argument.keyword.value == "store_prefix":
            return _literal(argument.value)
    if position is not None and len(positional) > position:
        return _literal(positional[position].value)
    return ""


def _literal(node: cst.BaseExpression) -> str | None:
    if isinstance(node, cst.SimpleString | cst.ConcatenatedString) and isinstance(node.evaluated_value, str):
        return node.evaluated_value
    return None
