"""What a patched runner records, forward by forward."""

import contextlib
import gc
import hashlib
import inspect
import json
import logging
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from probe_patch.errors import ConfigError
from probe_patch.runtime.sglang import MARK, Probe
from tests.runtime.dumps import read_dump
from tests.runtime.sglang.conftest import Configure
from tests.runtime.sglang.stand_in import ForwardBatch, Model, PlainRunner, ServerArgs, decode, extend, patched

EMBED, MLP = "Module.embed.Embedding.forward.0", "Module.mlp.Linear.forward.0"


def meta_of(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "meta.json").read_text())
    return document


def steps(folder: Path) -> dict[str, str]:
    """What was recorded: the mode of each step's forward."""
    found = sorted(folder.glob("step*/rank*/meta.json"), key=lambda path: int(path.parts[-3].removeprefix("step")))
    return {path.parts[-3]: meta_of(path.parent)["forward"]["mode"] for path in found}


def test_the_first_real_prefill_is_step_0(configure: Configure, runner_class: type[PlainRunner]) -> None:
    dump = configure(step=[0])
    runner = runner_class()
    for batch in (extend(1), extend(3, rids=["r1"]), decode(), extend(4)):
        runner.forward(batch)
    assert steps(dump / "rollout") == {"step0": "EXTEND"}
    found = read_dump(dump / "rollout" / "step0" / "rank0")
    assert list(found.data) == [EMBED, MLP]
    assert found.construct == {EMBED: None, MLP: None}
    expected = runner.model.mlp(runner.model.embed(torch.tensor([5, 6, 7])))  # type: ignore[operator]
    assert found.data[MLP]["output"][0]["Norm"] == pytest.approx(expected.norm().item(), rel=1e-6)
    assert found.meta["phase"] == "rollout"
    assert found.meta["skipped"] == {"few_tokens": 1}
    assert found.meta["parallel"]["tp"] == {"rank": 0, "size": 1}
    ids = struct.pack("<3q", 5, 6, 7)
    assert found.meta["forward"] == {
        "forward_pass_id": 2,
        "mode": "EXTEND",
        "tokens": 3,
        "request_ids": ["r1"],
        "input_embeds": False,
        "model_path": "tiny",
        "weight_version": None,
        "seq_lens": [3],
        "extend_prefix_lens": [0],
        "input_ids": {"shape": [3], "sha256": hashlib.sha256(ids).hexdigest()},
        "positions": {"shape": [3], "sha256": hashlib.sha256(struct.pack("<3q", 0, 1, 2)).hexdigest()},
        "max_forwards_reached": False,
    }
    engine = found.meta["engine"]
    assert (engine["gpu_id"], engine["node_rank"], engine["port"], engine["role"]) == (0, 0, 30000, "null")


@pytest.mark.parametrize(
    ("rollout", "expected"),
    [
        ({}, ["EXTEND", "MIXED"]),
        ({"modes": ["decode"]}, ["DECODE"]),
        ({"modes": ["extend", "decode"]}, ["EXTEND", "DECODE", "MIXED"]),
        ({"modes": ["all"]}, ["EXTEND", "DECODE", "TARGET_VERIFY", "MIXED"]),
        ({"modes": ["all"], "max_forwards": 2}, ["EXTEND", "DECODE"]),
        ({"min_tokens": 1}, ["EXTEND", "EXTEND", "MIXED"]),
        ({"min_tokens": 4}, ["MIXED"]),
    ],
)
def test_the_forwards_that_count(
    configure: Configure, runner_class: type[PlainRunner], rollout: dict[str, Any], expected: list[str]
) -> None:
    dump = configure(rollout)
    runner = runner_class()
    for batch in (
        extend(1),
        extend(3),
        decode(),
        extend(0, "IDLE"),
        extend(3, "TARGET_VERIFY"),
        extend(4, "MIXED"),
    ):
        runner.forward(batch)
    assert list(steps(dump / "rollout").values()) == expected
    assert list(steps(dump / "rollout")) == [f"step{number}" for number in range(len(expected))]


def test_step_counts_the_forwards_that_count_and_not_only_those_recorded(
    configure: Configure, runner_class: type[PlainRunner]
) -> None:
    dump = configure(step=[1, 3])
    runner = runner_class()
    for tokens in (2, 1, 3, 4, 5, 6):
        runner.forward(extend(tokens))
    tokens_of = {step: meta_of(dump / "rollout" / step / "rank0")["forward"]["tokens"] for step in ("step1", "step3")}
    assert steps(dump / "rollout").keys() == tokens_of.keys()
    assert tokens_of == {"step1": 3, "step3": 5}


def test_the_limit_is_said_in_the_log_and_in_the_last_dump(
    configure: Configure, runner_class: type[PlainRunner], caplog: pytest.LogCaptureFixture
) -> None:
    dump = configure({"max_forwards": 2})
    runner = runner_class()
    for _ in range(4):
        runner.forward(extend())
    reached = [meta_of(dump / "rollout" / f"step{n}" / "rank0")["forward"]["max_forwards_reached"] for n in (0, 1)]
    assert reached == [False, True]
    assert steps(dump / "rollout").keys() == {"step0", "step1"}
    assert caplog.text.count("max_forwards is 2") == 1


@pytest.mark.parametrize(
    ("inputs", "has_file", "has_hash"), [("tensor", True, True), ("hash", False, True), ("none", False, False)]
)
def test_the_inputs_as_a_file_as_hashes_or_not_at_all(
    configure: Configure, runner_class: type[PlainRunner], inputs: str, has_file: bool, has_hash: bool
) -> None:
    folder = configure({"inputs": inputs}) / "rollout" / "step0" / "rank0"
    runner_class().forward(extend(3))
    assert (folder / "inputs.pt").exists() is has_file
    assert ("input_ids" in meta_of(folder)["forward"]) is has_hash
    assert meta_of(folder)["forward"]["seq_lens"] == [3]
    if has_file:
        tensors = torch.load(folder / "inputs.pt", weights_only=True)
        assert {name: tensor.tolist() for name, tensor in tensors.items()} == {
            "input_ids": [5, 6, 7],
            "positions": [0, 1, 2],
            "seq_lens": [3],
            "extend_prefix_lens": [0],
        }


class Broken(nn.Module):
    def forward(self, states: Tensor) -> Tensor:
        raise RuntimeError("out of memory")


def test_an_exception_passes_and_what_came_before_it_is_there(
    configure: Configure, runner_class: type[PlainRunner]
) -> None:
    dump = configure()
    runner = runner_class()
    whole = runner.model.mlp
    runner.model.mlp = Broken()
    with pytest.raises(RuntimeError, match="out of memory"):
        runner.forward(extend())
    runner.model.mlp = whole
    runner.forward(extend())
    failed, fine = (read_dump(dump / "rollout" / f"step{number}" / "rank0") for number in (0, 1))
    assert failed.meta["ended_by_exception"] == "RuntimeError"
    assert list(failed.data) == [EMBED, "Module.mlp.Broken.forward.0"]
    assert fine.meta["ended_by_exception"] is None
    assert list(fine.data) == [EMBED, MLP]


def test_a_generator_that_calls_forward_between_its_yields(
    configure: Configure, runner_class: type[PlainRunner]
) -> None:
    dump = configure()
    runner = runner_class()

    def batches() -> Iterator[Tensor]:
        for tokens in (2, 3, 4):
            yield runner.forward(extend(tokens))

    for output in batches():
        runner.model.mlp(output)  # type: ignore[operator]  # ours alone, between two forwards: in no dump
    found = [read_dump(dump / "rollout" / f"step{number}" / "rank0") for number in range(3)]
    assert [list(dump.data) for dump in found] == [[EMBED, MLP]] * 3


def test_a_model_that_was_loaded_anew(configure: Configure, runner_class: type[PlainRunner]) -> None:
    dump = configure()
    runner = runner_class()
    runner.forward(extend())
    runner.model = Model()
    runner.forward(extend())
    found = [read_dump(dump / "rollout" / f"step{number}" / "rank0").data[MLP] for number in (0, 1)]
    assert found[1]["parameters"]["weight"]["Norm"] == pytest.approx(runner.model.mlp.weight.norm().item(), rel=1e-6)
    assert found[0]["parameters"]["weight"]["Norm"] != found[1]["parameters"]["weight"]["Norm"]


def test_a_second_runner_in_the_process_has_a_rank_of_its_own(
    configure: Configure, runner_class: type[PlainRunner]
) -> None:
    dump = configure()
    first, second = runner_class(), runner_class()
    first.forward(extend(2))
    second.forward(extend(3))
    first.forward(extend(4))
    rollout = dump / "rollout"
    tokens = {
        str(path.relative_to(rollout)): meta_of(path)["forward"]["tokens"]
        for path in sorted(rollout.glob("step*/rank*"))
    }
    assert tokens == {"step0/rank0": 2, "step0/rank1": 3, "step1/rank0": 4}
    del first, second
    gc.collect()
    runner_class().forward(extend(5))
    assert meta_of(rollout / "step0" / "rank0")["forward"]["tokens"] == 5


def test_a_rank_that_another_node_took_is_given_up(
    configure: Configure, runner_class: type[PlainRunner], caplog: pytest.LogCaptureFixture
) -> None:
    dump = configure()
    runner = runner_class()
    runner.forward(extend())
    (dump / ".rollout.locks" / "rank0.owner").write_text('{"host": "another"}')
    runner.forward(extend())
    assert sorted(str(path.relative_to(dump)) for path in dump.glob("rollout/step*/rank*")) == [
        "rollout/step0/rank0",
        "rollout/step1/rank1",
    ]
    assert meta_of(dump / "rollout" / "step1" / "rank1")["rank"] == 1
    assert "a process elsewhere took rank 0" in caplog.text


@pytest.mark.parametrize(("draft", "folders"), [(False, ["rollout"]), (True, ["rollout", "rollout_draft"])])
def test_draft_models_are_left_out_unless_asked_for(
    configure: Configure, runner_class: type[PlainRunner], draft: bool, folders: list[str]
) -> None:
    dump = configure({"draft": draft})
    target, drafter = runner_class(), runner_class(is_draft_worker=True)
    drafter.forward(extend())
    target.forward(extend())
    assert sorted(path.name for path in dump.glob("[!.]*")) == folders
    assert meta_of(dump / "rollout" / "step0" / "rank0")["engine"]["is_draft"] is False


@pytest.mark.parametrize(
    ("role", "folder", "modes"),
    [
        ("null", "rollout", ["EXTEND"]),
        ("prefill", "rollout_prefill", ["EXTEND"]),
        ("decode", "rollout_decode", ["DECODE"]),
    ],
)
def test_disaggregated_servers_have_a_folder_each(
    configure: Configure, runner_class: type[PlainRunner], role: str, folder: str, modes: list[str]
) -> None:
    dump = configure()
    runner = runner_class(server_args=ServerArgs(disaggregation_mode=role))
    runner.forward(extend())
    runner.forward(decode())
    assert [path.name for path in dump.glob("[!.]*")] == [folder]
    assert list(steps(dump / folder).values()) == modes


def test_the_rank_list_is_of_the_ranks_on_disk(configure: Configure, runner_class: type[PlainRunner]) -> None:
    dump = configure(rank=[1])
    runners = [runner_class(), runner_class(), runner_class()]
    for runner in runners:
        runner.forward(extend())
    assert [path.name for path in (dump / "rollout" / "step0").iterdir()] == ["rank1"]


def test_msprobes_own_hook_is_left_to_msprobe(configure: Configure, caplog: pytest.LogCaptureFixture) -> None:
    dump = configure()

    class NativeRunner(PlainRunner):
        def __init__(self) -> None:
            super().__init__()
            self.msprobe_debugger = object()

    patched(NativeRunner)().forward(extend())
    assert not dump.exists()
    assert "msProbe records this server and probe-patch does not" in caplog.text


def test_a_config_that_cannot_be_served_stops_the_server(
    configure: Configure, runner_class: type[PlainRunner], tmp_path: Path
) -> None:
    configure()
    (tmp_path / "config.json").write_text('{"dump_path": "/dump", "level": "L2"}')
    with pytest.raises(ConfigError, match="L2"):
        runner_class()


@pytest.mark.parametrize("config", ['{"dump_path": "/dump", "level": "L2"}', '{"dump_path": "/proc/nobody/dump"}', "{"])
def test_a_bad_config_stops_the_server_before_its_model_is_loaded(
    configure: Configure, tmp_path: Path, config: str
) -> None:
    configure()
    (tmp_path / "config.json").write_text(config)
    loaded = []

    class Loading(PlainRunner):
        def __init__(self) -> None:
            loaded.append(True)

    with pytest.raises(ConfigError):
        patched(Loading)()
    assert loaded == []


def test_token_ids_that_stand_for_embeddings_are_left_out(
    configure: Configure, runner_class: type[PlainRunner]
) -> None:
    folder = configure() / "rollout" / "step0" / "rank0"
    batch = extend(3)
    batch.input_embeds = torch.zeros(3, 4)
    runner_class().forward(batch)
    forward = meta_of(folder)["forward"]
    assert forward["input_embeds"] is True
    assert forward["tokens"] == 3
    assert "input_ids" not in forward
    assert "input_ids" not in torch.load(folder / "inputs.pt", weights_only=True)


def test_a_rank_that_is_left_out_is_said(
    configure: Configure, runner_class: type[PlainRunner], caplog: pytest.LogCaptureFixture
) -> None:
    configure(rank=[3])
    caplog.set_level(logging.INFO)
    runner = runner_class()
    for _ in range(12):
        runner.forward(extend())
    assert [record.message for record in caplog.records if "leaves out rank 0" in record.message] != []
    assert "nothing is recorded yet" not in caplog.text


def test_a_step_that_is_far_off_is_said_while_the_server_runs(
    configure: Configure, runner_class: type[PlainRunner], caplog: pytest.LogCaptureFixture
) -> None:
    configure(step=[500])
    runner = runner_class()
    for _ in range(12):
        runner.forward(extend())
    assert caplog.text.count("10 forwards have counted so far, and step in config.json selects none of them") == 1


def test_dumps_that_are_lost_are_counted_and_none_is_said_to_be_there(
    configure: Configure,
    runner_class: type[PlainRunner],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    dump = configure()
    runner = runner_class()
    caplog.set_level(logging.INFO)

    def full(path: Path, pieces: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("probe_patch.runtime.dump.write_atomically", full)
    for _ in range(5):
        runner.forward(extend())
    lost = [record.message for record in caplog.records if "lost so far" in record.message]
    assert [sentence.split(" dumps")[0].rsplit(" ", 1)[1] for sentence in lost] == ["1", "2", "4"]
    assert str(dump / "rollout" / "step3" / "rank0") in lost[-1]
    assert "entries in" not in caplog.text


def test_steps_of_an_earlier_run_do_not_stay_among_those_of_this_one(configure: Configure) -> None:
    dump = configure()
    for steps_served in (3, 1):
        program = SERVES_AND_COUNTS.format(steps_served)
        subprocess.run([sys.executable, "-c", program], check=True)
    assert [path.name for path in (dump / "rollout").iterdir()] == ["step0"]
    kept = sorted(path.name for path in (dump / "rollout.replaced").iterdir())
    assert kept == ["step0-rank0-1", "step1-rank0-1", "step2-rank0-1"]


SERVES_AND_COUNTS = """
from tests.runtime.sglang.stand_in import PlainRunner, extend, patched
runner = patched(PlainRunner)()
for _ in range({}):
    runner.forward(extend())
"""


def test_wrapping_twice_records_once(configure: Configure) -> None:
    probe, plugin = Probe(None), Probe(None)
    forward = probe.forward(PlainRunner.forward)
    assert getattr(forward, MARK) is True
    assert plugin.forward(forward) is forward
    assert plugin.init(initialised := probe.init(PlainRunner.__init__)) is initialised
    assert inspect.signature(forward) == inspect.signature(PlainRunner.forward)


def test_a_runner_nobody_watches_is_called_as_it_is() -> None:
    probe = Probe(None)

    class Unwatched(PlainRunner):
        __hash__ = None  # type: ignore[assignment]
        forward = probe.forward(PlainRunner.forward)

    assert Unwatched().forward(extend()).shape == (3, 4)


def test_the_batch_may_be_given_by_name(configure: Configure, runner_class: type[PlainRunner]) -> None:
    dump = configure()
    runner_class().forward(skip_attn_backend_init=True, forward_batch=extend(4))
    assert meta_of(dump / "rollout" / "step0" / "rank0")["forward"]["tokens"] == 4


def test_a_forward_inside_a_forward_is_part_of_it(configure: Configure) -> None:
    dump = configure()

    class Nested(PlainRunner):
        def forward(self, forward_batch: ForwardBatch, skip_attn_backend_init: bool = False) -> Tensor:
            output = super().forward(forward_batch)
            return output if skip_attn_backend_init else self.forward(forward_batch, True)

    runner = patched(Nested)()
    runner.forward(extend())
    runner.forward(extend())
    assert list(read_dump(dump / "rollout" / "step0" / "rank0").data) == [EMBED, MLP, EMBED[:-1] + "1", MLP[:-1] + "1"]
    assert steps(dump / "rollout").keys() == {"step0", "step1"}
    assert meta_of(dump / "rollout" / "step0" / "rank0")["problems"] == []


class Unreadable:
    forward_mode = "no enum"

    @property
    def input_ids(self) -> Tensor:
        raise RuntimeError("gone")


def test_a_batch_that_cannot_be_read_does_not_stop_the_run(
    configure: Configure, caplog: pytest.LogCaptureFixture
) -> None:
    configure({"modes": ["all"]})

    class Runner(PlainRunner):
        def forward(self, forward_batch: Any, skip_attn_backend_init: bool = False) -> Tensor:
            return torch.ones(1)

    assert patched(Runner)().forward(Unreadable()) == 1
    assert "starting: RuntimeError: gone" in caplog.text


def test_a_replayed_graph_is_said_in_meta(configure: Configure) -> None:
    dump = configure({"modes": ["decode"]})

    class Replaying(PlainRunner):
        def forward(self, forward_batch: ForwardBatch, skip_attn_backend_init: bool = False) -> Tensor:
            return torch.zeros(1)

    patched(Replaying)().forward(decode())
    (problem,) = meta_of(dump / "rollout" / "step0" / "rank0")["problems"]
    assert "CUDA graph replay" in problem["message"]


@pytest.mark.parametrize(
    ("batches", "rollout", "cause"),
    [
        ([extend(1)] * 12, {}, "10 extend forwards had fewer tokens than min_tokens, which is 2"),
        ([decode()] * 12, {}, "the forwards that ran were 10 decode, and rollout.modes is ['extend']"),
        ([extend(0, "IDLE")] * 12, {}, "the forwards that ran were 10 idle"),
    ],
)
def test_a_server_that_records_nothing_says_why_while_it_runs(
    configure: Configure,
    runner_class: type[PlainRunner],
    caplog: pytest.LogCaptureFixture,
    batches: list[ForwardBatch],
    rollout: dict[str, Any],
    cause: str,
) -> None:
    configure(rollout)
    runner = runner_class()
    for batch in batches:
        runner.forward(batch)
    spoken = [record.message for record in caplog.records if "nothing is recorded yet" in record.message]
    assert len(spoken) == 1
    assert cause in spoken[0]


def test_a_server_that_records_says_nothing_of_the_kind(
    configure: Configure, runner_class: type[PlainRunner], caplog: pytest.LogCaptureFixture
) -> None:
    configure()
    caplog.set_level(logging.INFO)
    runner = runner_class()
    for batch in (extend(3), *[extend(1)] * 20):
        runner.forward(batch)
    assert "nothing is recorded yet" not in caplog.text


def test_a_key_that_was_interrupted_leaves_no_hook(configure: Configure, runner_class: type[PlainRunner]) -> None:
    configure()
    runner = runner_class()

    class Interrupted(nn.Module):
        def forward(self, states: Tensor) -> Tensor:
            raise KeyboardInterrupt

    runner.model.mlp = Interrupted()
    with contextlib.suppress(KeyboardInterrupt):
        runner.forward(extend())
    assert all(not module._forward_hooks and not module._forward_pre_hooks for module in runner.model.modules())


SERVES_AND_ENDS = """
import sys
from tests.runtime.sglang.stand_in import PlainRunner, extend, patched
runner = patched(PlainRunner)()
for _ in range(int(sys.argv[1])):
    runner.forward(extend(1))
"""
SERVES_IN_A_FUNCTION = """
import sys
from tests.runtime.sglang.stand_in import PlainRunner, extend, patched
def main():
    runner = patched(PlainRunner)()
    for _ in range(int(sys.argv[1])):
        runner.forward(extend(1))
main()
"""


@pytest.mark.parametrize("program", [SERVES_AND_ENDS, SERVES_IN_A_FUNCTION], ids=["global", "local"])
@pytest.mark.parametrize(
    ("skipped", "cause"), [(0, "no forward ran"), (3, "3 extend forwards had fewer tokens"), (12, "10 extend forwards")]
)
def test_at_its_end_a_process_that_recorded_nothing_says_why_once(
    configure: Configure, program: str, skipped: int, cause: str
) -> None:
    configure()
    done = subprocess.run([sys.executable, "-c", program, str(skipped)], capture_output=True, text=True, check=True)
    (sentence,) = [line for line in done.stderr.splitlines() if "nothing is recorded yet" in line]
    assert cause in sentence


def test_a_config_that_turns_recording_off_and_on_and_moves_it_is_obeyed(
    configure: Configure, runner_class: type[PlainRunner], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for patience in ("WHILE_ON", "WHILE_OFF"):
        monkeypatch.setattr(f"probe_patch.runtime.hot_config.{patience}", 0.0)
    dump = configure()
    config, moved = tmp_path / "config.json", tmp_path / "moved"
    document = json.loads(config.read_text()) | {"dump_enable": False}
    config.write_text(json.dumps(document))
    runner = runner_class()
    runner.forward(extend(3))
    config.write_text(json.dumps(document | {"dump_enable": True}))
    runner.forward(extend(3))
    document |= {"dump_enable": True, "dump_path": str(moved), "rollout": {"modes": ["decode"]}}
    config.write_text(json.dumps(document))
    for batch in (extend(3), decode()):
        runner.forward(batch)
    assert steps(dump / "rollout") == {"step1": "EXTEND"}
    assert steps(moved / "rollout") == {"step2": "DECODE"}
