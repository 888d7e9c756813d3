"""SGLang's HTTP server, from ``apply`` to ``revert``, and of releases that load our plugin and are never touched."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from tests.real_sglang.report import Checkpoints
from tests.real_sglang.server import serving
from tests.real_sglang.setups import Setup, environment, hashes, probe_patch
from tests.runtime.dumps import read_dump

SETUPS = (Setup("0.5.10.post1", "patch"), Setup("0.5.12.post1", "plugin"), Setup("0.5.23", "plugin"))
# The second begins as the first, which a cache would notice.
PROMPTS = ([5, 6, 7, 8, 9], [5, 6, 7, 8, 9, 10], [30, 31, 32, 33, 34, 35, 36])
NEW_TOKENS = 4


@dataclass(frozen=True)
class Served:
    """What is left when a server has answered three requests, two health probes, and has been stopped."""

    setup: Setup
    before: Mapping[str, str]
    tree: Path
    dump: Path
    answers: list[list[int]]
    statuses: list[int]
    left: set[int]
    log: str


@pytest.fixture(scope="module", params=SETUPS, ids=str)
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, checkpoints: Checkpoints
) -> Served:
    setup: Setup = request.param
    folder = tmp_path_factory.mktemp("served")
    tree, log = setup.lay_out(folder), folder / "log"
    before = hashes(tree)
    if setup.through == "patch":
        probe_patch("apply", tree)
    config = folder / "config.json"
    config.write_text(json.dumps({"level": "L0", "dump_path": str(folder / "dump"), "step": []}), encoding="utf-8")
    advised = json.loads(probe_patch("launch-args", tree, "--config", config, "--format", "json").stdout)
    dump_on = {"DUMP_ON": "1", "PROBE_PATCH_ROLLOUT_CONFIG": str(config), **advised["environment"]}
    variables = environment(tree, dump_on)
    with serving(checkpoints.first, advised["arguments"], variables, folder, log) as server:
        answers = [server.generate(PROMPTS[0], NEW_TOKENS)]
        # As before the first request, until it was healthy: it runs no forward.
        statuses = [server.get("/health")]
        answers.append(server.generate(PROMPTS[1], NEW_TOKENS))
        # It runs a forward of one token, whatever the environment says of /health, but not on a busy server.
        server.wait_until_idle()
        statuses.append(server.get("/health_generate"))
        answers.append(server.generate(PROMPTS[2], NEW_TOKENS))
        left = server.stop()
    return Served(setup, before, tree, folder / "dump", answers, statuses, left, log.read_text(errors="replace"))


def test_each_request_is_one_step_and_nothing_else_is(served: Served) -> None:
    assert [len(answer) for answer in served.answers] == [NEW_TOKENS] * len(PROMPTS)
    written = sorted(str(path.relative_to(served.dump)) for path in served.dump.glob("*/*/*"))
    assert written == [f"rollout/step{step}/rank0" for step in range(len(PROMPTS))]
    for step, prompt in enumerate(PROMPTS):
        folder = served.dump / "rollout" / f"step{step}" / "rank0"
        inputs = torch.load(folder / "inputs.pt", weights_only=True)
        assert inputs["input_ids"].tolist() == prompt
        assert inputs["positions"].tolist() == list(range(len(prompt)))
        read = read_dump(folder)
        assert (read.meta["forward"]["mode"], read.meta["forward"]["tokens"]) == ("EXTEND", len(prompt))
        assert len(read.meta["forward"]["request_ids"]) == 1
        assert (len(read.data), read.meta["problems"]) == (28, [])
        assert "Module.model.layers.1.mlp.down_proj.RowParallelLinear.forward.0" in read.data


def test_a_health_probe_is_skipped_and_counted(served: Served) -> None:
    assert served.statuses == [200, 200]
    skipped = [read_dump(served.dump / "rollout" / f"step{step}" / "rank0").meta["skipped"] for step in range(3)]
    decodes = NEW_TOKENS - 1
    assert skipped == [{}, {"decode": decodes}, {"decode": 2 * decodes, "few_tokens": 1}]


def test_the_server_started_as_advised_is_warned_of_nothing(served: Served) -> None:
    said = [line for line in served.log.splitlines() if "probe-patch: " in line]
    assert any("DUMP_ON is on" in line for line in said)
    assert [line for line in said if "WARNING" in line and "level is missing" not in line] == []


def test_it_ends_with_all_of_its_processes(served: Served) -> None:
    assert served.left == set()
    assert "/probe_patch/" not in served.log, "no frame of ours is in a traceback"


def test_one_file_was_changed_and_is_restored_to_the_byte(served: Served) -> None:
    changed = {name for name, now in hashes(served.tree).items() if served.before.get(name) != now}
    patched = served.setup.through == "patch"
    assert changed == ({"sglang/srt/model_executor/model_runner.py"} if patched else set())
    if patched:
        probe_patch("revert", served.tree)
    assert hashes(served.tree) == served.before
