"""What is not patched, and the sentence that says why. The small runner itself is the example that is."""

import pytest

from probe_patch.errors import Refused
from probe_patch.patcher.request import Request
from probe_patch.patcher.rewrite import apply, inspect
from probe_patch.patcher.targets.kind import NeedsNoPatch
from tests.harness.model_runner import FILE_NAME
from tests.harness.sglang_releases import release
from tests.harness.wheels import read_from_wheel
from tests.patcher.sglang.small_runner import SMALL_RUNNER, edited

INIT = "    def __init__(self, model_config, gpu_id, is_draft_worker=False):"
FORWARD = "    def forward(self, forward_batch, skip_attn_backend_init=False):"
FORWARD_BODY = SMALL_RUNNER[SMALL_RUNNER.index(FORWARD) :]
ONCE = "and it must be there exactly once"


def refusal(source: bytes, where: str = FILE_NAME) -> str:
    with pytest.raises(Refused) as caught:
        apply(source, Request(), where)
    assert not isinstance(caught.value, NeedsNoPatch)
    return str(caught.value)


def test_the_small_runner_is_not_refused() -> None:
    assert apply(SMALL_RUNNER.encode(), Request(), FILE_NAME).source != SMALL_RUNNER.encode()


ANCHORS = [
    pytest.param(
        [("class ModelRunner:", "class Runner:")],
        f"a top-level class ModelRunner is not found, {ONCE}. Nearest: line 9: class Output:; line 13: class Runner:.",
        id="no class",
    ),
    pytest.param(
        [("class Output:", "class ModelRunner:")], "a top-level class ModelRunner is found 2 times", id="two classes"
    ),
    pytest.param(
        [("class ModelRunner:", "if True:\n  class ModelRunner:")],
        "a top-level class ModelRunner is not found",
        id="class in an if",
    ),
    pytest.param(
        [(INIT, INIT.replace("__init__", "setup"))], "a method __init__ in class ModelRunner is not found", id="no init"
    ),
    pytest.param(
        [(FORWARD, FORWARD.replace("forward(", "run("))],
        "a method forward in class ModelRunner is not found",
        id="no forward",
    ),
    pytest.param(
        [(FORWARD, "    def forward(self, batch): ...\n\n" + FORWARD)],
        "a method forward in class ModelRunner is found 2 times",
        id="forward twice",
    ),
    pytest.param(
        [(INIT, f"{INIT} ...\n\n{INIT}")], "a method __init__ in class ModelRunner is found 2 times", id="init twice"
    ),
    pytest.param(
        [(FORWARD_BODY, FORWARD_BODY + "\n    if True:\n        def forward(self, batch): ...\n")],
        "line 42: forward is defined again here",
        id="again in an if",
    ),
    pytest.param(
        [(FORWARD_BODY, FORWARD_BODY + "\n    forward = timer(forward)\n")],
        "line 41: forward is set again here",
        id="set again",
    ),
    pytest.param([(FORWARD, FORWARD.replace("def", "async def"))], "forward is async", id="async forward"),
    pytest.param([(INIT, INIT.replace("def", "async def"))], "__init__ is async", id="async init"),
    pytest.param([(FORWARD, FORWARD + "\n        yield")], "forward is a generator", id="generator"),
    pytest.param([(FORWARD, "    @staticmethod\n" + FORWARD)], "forward is a staticmethod", id="static"),
    pytest.param([(FORWARD, "    @property\n" + FORWARD)], "forward is a property", id="property"),
    pytest.param(
        [(FORWARD_BODY, f"{FORWARD} return 1\n")], "the body of forward stands on its def line", id="on its def line"
    ),
    pytest.param(
        [(FORWARD, FORWARD.replace("self", "this"))], "the first parameter of forward is not self", id="no self"
    ),
    pytest.param([(FORWARD, "    def forward(self, *, batch=None):")], "forward takes no batch", id="no batch"),
]


@pytest.mark.parametrize(("edits", "reason"), ANCHORS)
def test_anchor(edits: list[tuple[str, str]], reason: str) -> None:
    assert reason in refusal(edited(*edits))


NOT_OURS = [
    pytest.param(b"x = (1\n", "model_runner.py, line 1, column 5: does not parse as Python", id="syntax"),
    pytest.param(b"", "a top-level class ModelRunner is not found", id="empty"),
    pytest.param(
        b"from sglang.srt.model_executor.model_runner import ModelRunner\n\n\nclass MyRunner(ModelRunner):\n    pass\n",
        "line 4: MyRunner only derives from SGLang's ModelRunner; patch the file that defines that "
        "(srt/model_executor/model_runner.py)",
        id="derived",
    ),
    pytest.param(
        b"from vllm.config import VllmConfig\n\n\nclass ModelRunner:\n    def execute_model(self, batch): ...\n",
        "this is vLLM's model runner; probe-patch patches SGLang's (srt/model_executor/model_runner.py), so name that",
        id="vllm",
    ),
    pytest.param(
        b"import vllm.config\n\n\nclass GPUModelRunner:\n    pass\n", "this is vLLM's model runner", id="vllm for a gpu"
    ),
    pytest.param(edited(("import os\n", "import os\n_probe_patch = None\n")), "line 5: left over from", id="left over"),
    pytest.param(
        edited((FORWARD, f"    @_probe_patch_forward\n{FORWARD}")), "left over from", id="left-over decorator"
    ),
]


@pytest.mark.parametrize(("source", "reason"), NOT_OURS)
def test_not_ours(source: bytes, reason: str) -> None:
    assert reason in refusal(source)


MLX = [
    ("model_runner.py", "this runs MLX and not torch, so there is nothing in it to dump"),
    ("model_runner_stub.py", "MlxModelRunnerStub only derives from SGLang's ModelRunner"),
]


@pytest.mark.parametrize(("name", "reason"), MLX)
def test_the_runners_of_the_mlx_backend(name: str, reason: str) -> None:
    member = f"sglang/srt/hardware_backend/mlx/{name}"
    assert reason in refusal(read_from_wheel(release("0.5.10.post1").wheel, member), member)


VENDOR_EDITS = [
    '        dump_flag = int(os.environ.get("DUMP_ON", 0))\n',
    "        from msprobe.pytorch import PrecisionDebugger, seed_all\n",
    "        import msprobe.pytorch\n",
    "        self.debugger = PrecisionDebugger(config_path='config.json')\n",
]


@pytest.mark.parametrize("line", VENDOR_EDITS)
def test_hand_made_edits_are_named_by_line(line: str) -> None:
    source = edited(("        self.load_model()\n", f"        self.load_model()\n{line}"))
    assert "model_runner.py, line 22: already carries msProbe's hand-made edits" in refusal(source)


HOOKS = [
    "        self.msprobe_debugger = None\n",
    "        if server_args.msprobe_dump_config: pass\n",
    "        self.init_msprobe()\n",
    "        from .misc_utils import create_msprobe_debugger\n",
]


@pytest.mark.parametrize("line", HOOKS)
@pytest.mark.parametrize("more", ["", "        from msprobe.pytorch import PrecisionDebugger\n"])
def test_a_hook_of_its_own_needs_no_patch_whatever_the_number_says(line: str, more: str) -> None:
    source = edited(("        self.load_model()\n", f"        self.load_model()\n{line}{more}"))
    with pytest.raises(NeedsNoPatch):
        apply(source, Request(), FILE_NAME)
    found = inspect(source, FILE_NAME)
    assert not found.patched
    assert found.needs_no_patch is not None


@pytest.mark.parametrize("text", ["# init_msprobe()\n", '"msprobe_debugger"\n'])
def test_a_hook_that_is_only_mentioned_is_none(text: str) -> None:
    assert apply(edited(("import os\n", f"import os\n{text}")), Request(), FILE_NAME).source
