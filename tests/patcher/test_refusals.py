"""What is not patched, and the sentence that says why. The small actor itself is the example that is."""

import pytest

from probe_patch.errors import Refused
from probe_patch.patcher.request import Request
from probe_patch.patcher.rewrite import apply
from tests.patcher.small_actor import SMALL_ACTOR, edited

OLD_CALL = (
    '                    rollout_data.update(self.compute_log_prob(data_iterator, num_microbatches, store_prefix=""))\n'
)
ACTOR_WITH = SMALL_ACTOR[SMALL_ACTOR.index('            with timer("actor_train"):') :]
INIT = '    @with_defer(lambda: Timer().start("train_wait"))\n    def init(self, args, role, with_ref=False):'


def refusal(source: bytes, where: str = "actor.py") -> str:
    with pytest.raises(Refused) as caught:
        apply(source, Request(), where)
    return str(caught.value)


def test_the_small_actor_is_not_refused() -> None:
    assert apply(SMALL_ACTOR.encode(), Request(), "actor.py").source != SMALL_ACTOR.encode()


MISSING = [
    pytest.param(
        [("class MegatronTrainRayActor(TrainRayActor)", "class MegatronActor(TrainRayActor)")],
        "a top-level class named *TrainRayActor with a method init is not found, and it must be there exactly once. "
        "Nearest: line 13: class MegatronActor(TrainRayActor):.",
        id="class",
    ),
    pytest.param(
        [
            (
                "class MegatronTrainRayActor(TrainRayActor):",
                "class TrainRayActor:\n    def init(self, role): ...\n\n\nclass MegatronTrainRayActor(TrainRayActor):",
            )
        ],
        "a top-level class named *TrainRayActor with a method init is found 2 times",
        id="two classes",
    ),
    pytest.param(
        [("def init(self, args, role,", "def setup(self, args, role,")], "with a method init is not found", id="init"
    ),
    pytest.param([("def init(self, args, role,", "def init(self, args, kind,")], "takes no role", id="no role"),
    pytest.param(
        [("def init(self, args,", "def init(this, args,")], "first parameter of init is not self", id="no self"
    ),
    pytest.param([(INIT, "    @staticmethod\n" + INIT.split("\n")[1])], "init is a staticmethod", id="static"),
    pytest.param([('        """Build the model."""\n', "        yield\n")], "init is a generator", id="generator"),
    pytest.param(
        [
            (
                "    def train_actor(self, rollout_id, rollout_data):",
                "    def train_actor(self): ...\n\n    def train_actor(self, rollout_id, rollout_data):",
            )
        ],
        "a method train_actor in class MegatronTrainRayActor is found 2 times",
        id="train_actor twice",
    ),
    pytest.param([('store_prefix="ref_"', 'store_prefix="reference_"')], "(phase ref) is not found", id="other prefix"),
    pytest.param([('store_prefix="ref_"', 'store_prefix=f"ref_"')], "(phase ref) is not found", id="f-string prefix"),
    pytest.param([('store_prefix="ref_"', "store_prefix=prefix")], "(phase ref) is not found", id="prefix in a name"),
    pytest.param([(OLD_CALL, OLD_CALL + OLD_CALL)], "(phase old) is found 2 times", id="old twice"),
    pytest.param([(OLD_CALL, "                    pass\n")], "(phase old) is not found", id="no old"),
    pytest.param(
        [(OLD_CALL, "                    run = lambda: self.compute_log_prob([], [])\n")],
        "nested function",
        id="lambda",
    ),
    pytest.param(
        [
            (
                OLD_CALL,
                "                    def old():\n                        return self.compute_log_prob([], [])\n",
            )
        ],
        "the statement of phase old stands in a nested function",
        id="nested function",
    ),
    pytest.param(
        [
            (
                OLD_CALL,
                "                    try:\n                        self.compute_log_prob([], [])\n"
                "                    except RuntimeError:\n                        pass\n",
            )
        ],
        "the statement of phase old stands in a try whose except may swallow its failure",
        id="try",
    ),
    pytest.param(
        [
            (
                OLD_CALL,
                "                    with contextlib.suppress(OSError):\n"
                "                        self.compute_log_prob([], [])\n",
            )
        ],
        "the statement of phase old stands in a with that may swallow its failure",
        id="suppress",
    ),
    pytest.param(
        [
            (
                OLD_CALL,
                "                    for _ in []:\n                        self.compute_log_prob([], []); break\n",
            )
        ],
        "the statement of phase old shares its line with a jump",
        id="jump on the line",
    ),
    pytest.param(
        [
            (
                OLD_CALL,
                "                    try:\n                        self.compute_log_prob([], [])\n"
                "                    finally:\n                        return\n",
            )
        ],
        "the statement of phase old stands in a try whose finally jumps away",
        id="finally",
    ),
    pytest.param(
        [('        """Build the model."""\n', '        """Build the model."""; x = 1\n')],
        "code shares the line of init's docstring",
        id="docstring and code",
    ),
    pytest.param(
        [
            (
                ACTOR_WITH,
                "            while True:\n                with timer('actor_train'):\n"
                "                    for x in []:\n                        break\n                    else:\n"
                "                        break\n                    train()\n",
            )
        ],
        "the statement of phase actor is left by a break or continue",
        id="break",
    ),
    pytest.param(
        [(OLD_CALL, "                    x = [self.compute_log_prob([], []) for _ in range(2)]\n")],
        "nested function or comprehension",
        id="comprehension",
    ),
    pytest.param(
        [(OLD_CALL, "                    if rollout_id: self.compute_log_prob([], [])\n")],
        "shares its line with a compound statement",
        id="on the if's line",
    ),
    pytest.param(
        [(OLD_CALL, "                    for x in self.compute_log_prob([], []):\n                        pass\n")],
        "shares its line with a compound statement",
        id="in a for's head",
    ),
    pytest.param(
        [(OLD_CALL, '                    x = self.compute_log_prob([], []), self.compute_log_prob([], [], "mopd_")\n')],
        "also computes other log-probs",
        id="two log-probs in one statement",
    ),
    pytest.param([('timer("actor_train")', 'timer("train_actor")')], "(phase actor) is not found", id="no timer"),
    pytest.param([(ACTOR_WITH, ACTOR_WITH + ACTOR_WITH)], "(phase actor) is found 2 times", id="actor twice"),
    pytest.param(
        [(ACTOR_WITH, ACTOR_WITH + "                x = self.compute_log_prob([], [], f'x_')\n")],
        "the block timed as actor_train also computes log-probs",
        id="log-probs in the actor's block",
    ),
    pytest.param(
        [("                train(rollout_id, self.model,", "                fit(rollout_id, self.model,")],
        "(phase actor) is not found",
        id="no train call",
    ),
]


@pytest.mark.parametrize(("edits", "reason"), MISSING)
def test_anchor(edits: list[tuple[str, str]], reason: str) -> None:
    assert reason in refusal(edited(*edits))


NOT_OURS = [
    pytest.param(b"x = (1\n", "actor.py, line 1, column 5: does not parse as Python", id="syntax"),
    pytest.param(b"x = 1\n\0", "does not parse as Python", id="null byte"),
    pytest.param(b"# coding: nonsense\nx = 1\n", "(unknown encoding: nonsense)", id="encoding"),
    pytest.param(b"# coding: utf-7\nx = 1\n", "does not keep ASCII as it is", id="utf-7"),
    pytest.param(b'"\xff"\n', "does not parse as Python", id="not utf-8"),
    pytest.param(b"", "a top-level class named *TrainRayActor", id="empty"),
    pytest.param(
        b"class RayTrainGroup: ...\nclass TrainRayActor: ...\n", "slime's actor from before 2025-07-18", id="early"
    ),
    pytest.param(b"class FSDPTrainRayActor(TrainRayActor): ...\n", "this is slime's FSDP actor", id="fsdp"),
    pytest.param(
        edited(("        return self.train_actor(rollout_id, {})\n", ""))
        .split(b"    def train_actor")[0]
        .replace(
            b"        if self.args.debug_rollout_only:\n            return None\n",
            b"        raise NotImplementedError\n",
        ),
        "MegatronTrainRayActor.train is an abstract skeleton",
        id="skeleton",
    ),
    pytest.param(edited(("import os\n", "import os\n_probe_patch = None\n")), "line 5: left over from", id="left over"),
]


@pytest.mark.parametrize(("source", "reason"), NOT_OURS)
def test_not_ours(source: bytes, reason: str) -> None:
    assert reason in refusal(source)


VENDOR_EDITS = [
    ('        dump_flag = int(os.environ.get("DUMP_ON", 0))\n', 16),
    ("        from msprobe.pytorch import PrecisionDebugger, seed_all\n", 16),
    ("        import msprobe.pytorch\n", 16),
    ("        self.debugger = None\n", 16),
    ("        debugger = PrecisionDebugger(config_path='config.json')\n", 16),
]


@pytest.mark.parametrize(("line", "number"), VENDOR_EDITS)
def test_hand_made_edits_are_named_by_line(line: str, number: int) -> None:
    source = edited(('        """Build the model."""\n', '        """Build the model."""\n' + line))
    assert f"actor.py, line {number + 1}: already carries msProbe's hand-made edits" in refusal(source)


def test_a_block_quoted_in_a_string_is_the_users() -> None:
    quoted = '"""A small actor.\n\n# >>> probe-patch init\n# <<< probe-patch init\n"""'
    assert "line 3: a probe-patch marker stands in a string" in refusal(edited(('"""A small actor."""', quoted)))


@pytest.mark.parametrize("phases", [("ref",), ("actor",)])
def test_only_the_phases_asked_for_need_their_anchors(phases: tuple[str, ...]) -> None:
    source = edited((OLD_CALL, OLD_CALL + OLD_CALL))
    assert apply(source, Request(phases), "actor.py").source != source  # type: ignore[arg-type]
