"""What the user of *this* actor should know before a run costs money: which phases depend on what."""

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from probe_patch.patcher.syntax import Source
from probe_patch.patcher.targets.slime.anchors import Anchors
from probe_patch.patcher.tree import walk

_FREES_OLD = (
    "--num-steps-per-rollout 2, a --kl-coef that is not 0, --keep-old-actor, or --get-mismatch-metrics with "
    "--custom-tis-function-path"
)


def slime_notes(source: Source, anchors: Anchors) -> tuple[str, ...]:
    """One sentence per thing to know, in the order of the phases."""
    return tuple(_notes(source, anchors))


def _notes(source: Source, anchors: Anchors) -> Iterator[str]:
    conditions = {phase: " and ".join(_conditions(source, statement)) for phase, statement in anchors.phases.items()}
    if '"ref"' in conditions.get("ref", ""):
        yield "phase ref runs only with a reference model (--ref-load, and --use-kl-loss or --kl-coef not 0)"
    if "can_reuse" in conditions.get("old", ""):
        yield (
            "phase old does not run here under default GRPO with one step per rollout: slime takes the log-probs of "
            f"the training step instead; what makes it run: {_FREES_OLD}"
        )
    elif "use_rollout_logprobs" in conditions.get("old", ""):
        yield "phase old does not run with --use-rollout-logprobs, unless --get-mismatch-metrics is given too"
    without_advantages = [phase for phase, text in conditions.items() if "compute_advantages_and_returns" in text]
    if without_advantages:
        yield f"no {' and no '.join(without_advantages)} phase runs in supervised fine-tuning"
    if any(_is_teacher_call(node) for node in walk(anchors.rollout)):
        yield "the teacher's log-probs (store_prefix teacher_) are not dumped; they belong to none of the phases"


def _conditions(source: Source, statement: cst.CSTNode) -> list[str]:
    """The tests of every ``if`` around ``statement``, outermost first."""
    ifs = [node for node in source.around(statement) if isinstance(node, cst.If)]
    return [" ".join(source.text(node.test).split()) for node in reversed(ifs)]


def _is_teacher_call(node: cst.CSTNode) -> bool:
    return m.matches(
        node,
        m.Call(
            func=m.Attribute(attr=m.Name("compute_log_prob")),
            args=[
                m.ZeroOrMore(),
                m.Arg(
                    keyword=m.Name("store_prefix"), value=m.SimpleString(m.MatchIfTrue(lambda text: "teacher" in text))
                ),
                m.ZeroOrMore(),
            ],
        ),
    )
