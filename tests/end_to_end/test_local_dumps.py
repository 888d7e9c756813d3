"""Every era's tree, patched, in every configuration: what is dumped where, and that training computes the same bits."""

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from probe_patch.demo.fixture import ERAS, lay_out, package_name
from probe_patch.dump_format import PHASE_FOLDERS, Phase
from tests.end_to_end.jobs import (
    OFF,
    UNSET,
    Job,
    Outcome,
    dump_into,
    dumps_in,
    parameter_norms,
    patched_tree,
    read_phase,
    run_jobs,
)

# Eight samples, two at a time.
MICRO_BATCHES = 4

ONE = ["--num-rollout", "1"]
TWO = ["--num-rollout", "2"]
IN_LOSS = ["--kl-coef", "0", "--use-kl-loss"]
CONFIGURATIONS = {
    "default": TWO,
    "one step": [*TWO, *IN_LOSS],
    "two steps": [*ONE, *IN_LOSS, "--num-steps-per-rollout", "2"],
    "rollout log-probs": [*TWO, "--use-rollout-logprobs"],
    "no reference model": [*ONE, "--no-with-ref"],
    "SFT": [*ONE, "--loss-type", "sft_loss", "--disable-compute-advantages-and-returns"],
    "rollout only": [*TWO, "--debug-rollout-only"],
    "critic": [*TWO, "--role", "critic"],
    "teacher": [*ONE, "--use-opd"],
    "offload": [*TWO, "--offload-train"],
}
TRIED_OFF = ("default", "SFT", "critic")

ALL: tuple[Phase, ...] = ("ref", "old", "actor")
NO_OLD: tuple[Phase, ...] = ("ref", "actor")
# Where it says None, the era has nothing to show that the others do not.
DUMPED: dict[str, tuple[tuple[Phase, ...] | None, ...]] = {
    #                     E3   E5   E7   E10  E12     E14     E15     miles
    "default": (ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL),
    "one step": (ALL, ALL, ALL, ALL, ALL, ALL, NO_OLD, ALL),
    "two steps": (ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL),
    "rollout log-probs": (ALL, ALL, ALL, ALL, NO_OLD, NO_OLD, NO_OLD, NO_OLD),
    "no reference model": (("old", "actor"),) * 8,
    "SFT": (("actor",),) * 8,
    "rollout only": ((),) * 8,
    "critic": ((),) * 8,
    "teacher": (None, None, None, None, None, ALL, ALL, ALL),
    "offload": (ALL, None, None, None, ALL, None, None, ALL),
}

EVERYTHING = ("E3", "E15", "miles")

OF_EACH_LAYER = (
    "TransformerLayer",
    "input_layernorm.SequenceParallelRMSNorm",
    "self_attention.SelfAttention",
    "self_attention.linear_qkv.ColumnParallelLinear",
    "self_attention.q_layernorm.SequenceParallelRMSNorm",
    "self_attention.k_layernorm.SequenceParallelRMSNorm",
    "self_attention.core_attention.PackedDotProductAttention",
    "self_attention.core_attention.scale_mask_softmax.FusedScaleMaskSoftmax",
    "self_attention.core_attention.attention_dropout.Dropout",
    "self_attention.linear_proj.RowParallelLinear",
    "pre_cross_attn_layernorm.IdentityOp",
    "cross_attention.IdentityOp",
    "cross_attn_bda.IdentityFuncOp",
    "pre_mlp_layernorm.SequenceParallelRMSNorm",
    "mlp.MLP",
    "mlp.linear_fc1.ColumnParallelLinear",
    "mlp.linear_fc2.RowParallelLinear",
)
CALLED_MODULES = {
    "Module.0.GPTModel",
    "Module.0.embedding.LanguageModelEmbedding",
    "Module.0.embedding.word_embeddings.VocabParallelEmbedding",
    "Module.0.embedding.embedding_dropout.Dropout",
    "Module.0.rotary_pos_emb.RotaryEmbedding",
    "Module.0.decoder.TransformerBlock",
    "Module.0.decoder.final_layernorm.SequenceParallelRMSNorm",
    "Module.0.output_layer.ColumnParallelLinear",
    *(f"Module.0.decoder.layers.{layer}.{name}" for layer in (0, 1) for name in OF_EACH_LAYER),
}

Outcomes = dict[str, Outcome]

each_era = pytest.mark.parametrize("era", ERAS)
each_run = pytest.mark.parametrize(
    ("era", "configuration", "phases"),
    [
        pytest.param(era, configuration, phases, id=f"{era}: {configuration}")
        for configuration, row in DUMPED.items()
        for era, phases in zip(ERAS, row, strict=True)
        if phases is not None
    ],
)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("local")


@pytest.fixture(scope="module")
def outcomes(scratch: Path) -> Outcomes:
    return run_jobs({name: job for era in ERAS for name, job in _jobs(era, scratch)}, scratch / "results")


def _jobs(era: str, scratch: Path) -> Iterator[tuple[str, Job]]:
    plain = lay_out(era, scratch / "plain" / era)
    patched = patched_tree(era, scratch / "patched" / era)
    for name, flags in CONFIGURATIONS.items():
        if DUMPED[name][ERAS.index(era)] is None:
            continue
        yield f"{era}: {name}: unpatched", Job(plain, flags)
        config = dump_into(_dump(scratch, era, name))
        yield f"{era}: {name}: on", Job(patched, flags, {"DUMP_ON": "1", "PROBE_PATCH_TRAIN_CONFIG": str(config)})
        if name in TRIED_OFF:
            yield f"{era}: {name}: off", Job(patched, flags, OFF)
    yield f"{era}: default: unset", Job(patched, CONFIGURATIONS["default"], UNSET)
    if era in ("E3", "miles"):
        config = dump_into(_dump(scratch, era, "second step"), steps=[1])
        env = {"DUMP_ON": "true", "PROBE_PATCH_CONFIG": str(config)}
        yield f"{era}: second step", Job(patched, ["--num-rollout", "3"], env)
    if era in ("E12", "E14", "E15", "miles"):
        config = dump_into(_dump(scratch, era, "old by turns"))
        turns = [{"use_rollout_logprobs": True}, {}, {"use_rollout_logprobs": True}]
        env = {"DUMP_ON": "1", "PROBE_PATCH_CONFIG": str(config)}
        yield f"{era}: old by turns", Job(patched, [], env, turns)

    if era in EVERYTHING:
        config = dump_into(_dump(scratch, era, "everything"), level="mix", data_mode=["all"])
        env = {"DUMP_ON": "1", "PROBE_PATCH_CONFIG": str(config)}
        yield f"{era}: everything", Job(patched, CONFIGURATIONS["default"], env)


def _dump(scratch: Path, era: str, configuration: str) -> Path:
    return scratch / "dumps" / era / configuration.replace(" ", "_")


@each_run
def test_there_is_a_dump_for_each_phase_that_ran_in_each_rollout_and_no_other(
    outcomes: Outcomes, scratch: Path, era: str, configuration: str, phases: tuple[Phase, ...]
) -> None:
    rollouts = outcomes[f"{era}: {configuration}: on"].result.rollouts
    steps = {"1": [0], "2": [0, 1]}[CONFIGURATIONS[configuration][1]]
    assert dumps_in(_dump(scratch, era, configuration)) == sorted(
        f"{PHASE_FOLDERS[phase]}/step{step}/rank0" for phase in phases for step in steps
    )
    # E3 and E5 train a critic as if it were the actor; it is no phase of ours.
    if configuration != "critic":
        assert [tuple(phase for phase in ALL if phase in rollout.ranks[0].phases) for rollout in rollouts] == [
            phases
        ] * len(steps)


@each_run
def test_training_computes_the_same_bits_with_the_dump_as_unpatched(
    outcomes: Outcomes, era: str, configuration: str, phases: tuple[Phase, ...]
) -> None:
    unpatched, on = (outcomes[f"{era}: {configuration}: {mode}"].result for mode in ("unpatched", "on"))
    assert unpatched.error is None and on.error is None
    assert unpatched.numbers() == on.numbers()
    assert [report.phases for rollout in on.rollouts for report in rollout.ranks] == [
        report.phases for rollout in unpatched.rollouts for report in rollout.ranks
    ]


@each_era
@pytest.mark.parametrize("run", [*(f"{configuration}: off" for configuration in TRIED_OFF), "default: unset"])
def test_switched_off_the_same_bits_are_computed_and_nothing_of_ours_is_there(
    outcomes: Outcomes, era: str, run: str
) -> None:
    outcome = outcomes[f"{era}: {run}"]
    assert outcome.result.numbers() == outcomes[f"{era}: {run.partition(':')[0]}: unpatched"].result.numbers()
    assert outcome.said == ()
    for rollout in outcome.result.rollouts:
        assert rollout.ranks[0].train_function_is_original
        assert not rollout.ranks[0].probe_patch_loaded
    on = outcomes[f"{era}: default: on"].result.rollouts[0].ranks[0]
    assert on.probe_patch_loaded
    assert not on.train_function_is_original


@each_run
def test_each_dump_counts_its_own_phase_from_0(
    outcomes: Outcomes, scratch: Path, era: str, configuration: str, phases: tuple[Phase, ...]
) -> None:
    for phase in phases:
        for step in range(len(outcomes[f"{era}: {configuration}: on"].result.rollouts)):
            dump = read_phase(_dump(scratch, era, configuration), phase, step)
            calls = Counter(entry.rpartition(".forward.")[0] for entry in dump.data)
            assert set(calls) == CALLED_MODULES
            assert set(calls.values()) == {MICRO_BATCHES}
            assert set(dump.data) == {f"{label}.forward.{call}" for label in calls for call in range(MICRO_BATCHES)}
            assert set(dump.construct) == set(dump.data)
            meta = dump.meta
            assert (meta["phase"], meta["step"], meta["rollout_id"]) == (phase, step, step)
            assert (meta["rank"], meta["ended_by_exception"], meta["problems"]) == (0, None, [])
            assert meta["entries"] == len(dump.data)
            assert set(meta["target_versions"]) == {package_name(era), "megatron.core"}


@pytest.mark.parametrize(
    ("era", "configuration"),
    [*((era, "default") for era in ERAS), *((era, "offload") for era in ("E3", "E12", "miles"))],
)
def test_each_phase_holds_the_weights_it_ran_with(
    outcomes: Outcomes, scratch: Path, era: str, configuration: str
) -> None:
    """The reference model is the actor's first weights times 0.9, in every layer, and training moves only the actor."""
    norms = {
        (phase, step): parameter_norms(read_phase(_dump(scratch, era, configuration), phase, step))
        for phase in ALL
        for step in (0, 1)
    }
    ref, old = norms["ref", 0], norms["old", 0]
    assert len(ref) == 19
    assert ref == {name: pytest.approx(0.9 * norm, rel=1e-6) for name, norm in old.items()}
    assert norms["actor", 0] == old
    assert norms["ref", 1] == ref
    assert norms["actor", 1] == norms["old", 1]
    assert all(norms["old", 1][name] != norm for name, norm in old.items())


@each_era
def test_the_log_prob_phases_saw_what_training_saw(outcomes: Outcomes, scratch: Path, era: str) -> None:
    dumps = {phase: read_phase(_dump(scratch, era, "default"), phase, 0) for phase in ALL}
    entry = "Module.0.output_layer.ColumnParallelLinear.forward.3"
    ref, old, actor = ({**dumps[phase].data[entry]["output"][0], "requires_grad": None} for phase in ALL)
    assert old == actor
    assert ref["shape"] == old["shape"]
    assert ref["Norm"] != old["Norm"]
    assert set(dumps["ref"].data) == set(dumps["old"].data)
    assert all(math.isfinite(tensor[key]) for tensor in (ref, old) for key in ("Max", "Min", "Mean", "Norm"))


@each_era
def test_an_optimizer_step_inside_the_rollout_shows_in_the_actors_dump_only(
    outcomes: Outcomes, scratch: Path, era: str
) -> None:
    folder = _dump(scratch, era, "two steps")
    for phase in ALL:
        by_call = [parameter_norms(read_phase(folder, phase, 0), call) for call in range(MICRO_BATCHES)]
        assert by_call[0] == by_call[1]
        assert by_call[2] == by_call[3]
        assert (by_call[1] != by_call[2]) == (phase == "actor")


@pytest.mark.parametrize("era", EVERYTHING)
def test_functions_and_gradients_are_recorded_and_change_no_bit(outcomes: Outcomes, scratch: Path, era: str) -> None:
    on = outcomes[f"{era}: everything"].result
    assert on.numbers() == outcomes[f"{era}: default: unpatched"].result.numbers()
    for phase in ALL:
        dump = read_phase(_dump(scratch, era, "everything"), phase, 1)
        kinds = Counter(entry.partition(".")[0] for entry in dump.data)
        assert kinds["Module"] and kinds["Functional"] and kinds["Tensor"] and kinds["Torch"]
        flows_back = [entry for entry in dump.data if ".backward" in entry or ".parameters_grad." in entry]
        assert bool(flows_back) == (phase == "actor")
        assert dump.meta["problems"] == []


@pytest.mark.parametrize("era", EVERYTHING)
def test_each_micro_batch_brings_each_parameter_a_gradient(outcomes: Outcomes, scratch: Path, era: str) -> None:
    data = read_phase(_dump(scratch, era, "everything"), "actor", 0).data
    named = {(entry, name) for entry, record in data.items() if ".parameters_grad." in entry for name in record}
    owned = {
        (f"{entry.rpartition('.forward.')[0]}.parameters_grad.{number}", name)
        for entry, record in data.items()
        if entry.startswith("Module.") and entry.endswith(".forward.0")
        for name in record["parameters"]
        for number in range(MICRO_BATCHES)
    }
    assert len(owned) == 19 * MICRO_BATCHES
    assert named == owned


@pytest.mark.parametrize("era", ["E3", "miles"])
def test_a_step_list_counts_rollouts(outcomes: Outcomes, scratch: Path, era: str) -> None:
    assert dumps_in(_dump(scratch, era, "second step")) == sorted(
        f"{folder}/step1/rank0" for folder in PHASE_FOLDERS.values()
    )
    for phase in ALL:
        assert read_phase(_dump(scratch, era, "second step"), phase, 1).meta["rollout_id"] == 1


@pytest.mark.parametrize("era", ["E12", "E14", "E15", "miles"])
def test_a_rollout_without_a_phase_is_a_step_of_that_phase_too(outcomes: Outcomes, scratch: Path, era: str) -> None:
    """These eras skip old with the rollout's own log-probs, here in every other rollout."""
    dumps = dumps_in(_dump(scratch, era, "old by turns"))
    assert [name for name in dumps if name.startswith("old")] == ["old_log_prob/step1/rank0"]
    assert [name for name in dumps if name.startswith("actor")] == [f"actor_train/step{n}/rank0" for n in range(3)]


@pytest.mark.parametrize(
    ("run", "sentences"),
    [
        ("E12: default: on", []),
        ("E15: one step: on", ["phase old was asked for but did not run: slime 0.3 and later take the log-probs"]),
        ("E14: rollout log-probs: on", ["phase old was asked for but did not run: --use-rollout-logprobs takes"]),
        ("E7: no reference model: on", ["phase ref was asked for but did not run: there is no reference model"]),
        (
            "miles: SFT: on",
            [f"phase {phase} was asked for but did not run: compute_advantages_and_" for phase in ("ref", "old")],
        ),
        ("E15: teacher: on", []),
        *((f"{era}: {run}: on", []) for era in ERAS for run in ("rollout only", "critic")),
    ],
)
def test_a_phase_that_never_runs_is_said_once(outcomes: Outcomes, run: str, sentences: list[str]) -> None:
    said = outcomes[run].said
    assert len(said) == len(sentences)
    assert all(sentence in text for sentence, text in zip(sentences, said, strict=True))
