"""A running server's settings, as each era of SGLang shows them."""

import sys
from types import SimpleNamespace
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe_patch.launch.setting import EVERY_LEVEL, Setting
from probe_patch.launch.settings import SETTINGS
from probe_patch.launch.startup import partial_dump_warnings

EXTEND = frozenset({"extend"})
DECODE = frozenset({"decode"})
ALL = frozenset({"all"})

Fields: TypeAlias = dict[str, object]

COMPLETE: Fields = {"disable_cuda_graph": True, "disable_radix_cache": True, "chunked_prefill_size": -1}
# Servers started with everything that launch-args prints for their version: nothing to say.
SILENT: dict[str, Fields] = {
    "0.3.0": {**COMPLETE, "chunked_prefill_size": None, "enable_torch_compile": False},
    "0.3.6": {**COMPLETE, "chunked_prefill_size": 1048576 // 4 // 2},
    "0.5.9": {**COMPLETE, "skip_server_warmup": True, "enable_piecewise_cuda_graph": False, "warmups": None},
    "0.5.10": {**COMPLETE, "skip_server_warmup": True, "disable_piecewise_cuda_graph": True},
    "0.5.15": {
        **COMPLETE,
        "disable_cuda_graph": False,
        "skip_server_warmup": True,
        "cuda_graph_config": SimpleNamespace(
            decode=SimpleNamespace(backend="disabled"), prefill=SimpleNamespace(backend="disabled")
        ),
        "msprobe_dump_config": None,
        "disaggregation_mode": "null",
        "pp_size": 1,
    },
}


def said(fields: Fields, modes: frozenset[str] = ALL, level: str = "L0") -> tuple[str, ...]:
    return partial_dump_warnings(SimpleNamespace(**fields), modes, level)


@pytest.mark.parametrize("version", SILENT)
def test_a_server_with_all_flags_is_not_warned_about(version: str) -> None:
    assert said(SILENT[version]) == ()


GRAPHS_0_5_14 = {"decode": {"backend": "full"}, "prefill": {"backend": "breakable"}}
ENFORCED: Fields = {"enforce_piecewise_cuda_graph": True}
# Both printed flags are given, and lose; and only --cuda-graph-config is given, and for decode forwards only.
CONFIG_WINS: Fields = {
    "cuda_graph_config": GRAPHS_0_5_14,
    "cuda_graph_backend_decode": "disabled",
    "cuda_graph_backend_prefill": "disabled",
}
CONFIG_GIVEN: Fields = {
    "cuda_graph_config": GRAPHS_0_5_14,
    "cuda_graph_backend_decode": None,
    "cuda_graph_backend_prefill": None,
    "_cuda_graph_config_locked": {("decode", "backend")},
}
SPOILED: list[tuple[str, frozenset[str], Fields, str]] = [
    ("0.3.0", EXTEND, {"disable_radix_cache": False}, "pass --disable-radix-cache (through slime: --sglang-disable-ra"),
    ("0.3.0", EXTEND, {"chunked_prefill_size": 8192}, "pass --chunked-prefill-size -1"),
    ("0.3.0", DECODE, {"disable_cuda_graph": False}, "CUDA graphs are on: a decode forward"),
    ("0.5.9", EXTEND, {"disable_cuda_graph": False, "dllm_algorithm": "X"}, "pass --disable-cuda-graph"),
    ("0.5.9", EXTEND, {"enable_piecewise_cuda_graph": True}, "leave out --enable-piecewise-cuda-graph"),
    ("0.5.9", EXTEND, {"skip_server_warmup": False}, "pass --skip-server-warmup"),
    ("0.5.9", EXTEND, {"warmups": "voice_chat"}, "leave out --warmups (through slime: --sglang-warmups)"),
    ("0.5.9", EXTEND, {"enable_two_batch_overlap": True}, "leave out --enable-two-batch-overlap"),
    ("0.5.9", EXTEND, {"enable_pdmux": True}, "leave out --enable-pdmux"),
    ("0.5.9", EXTEND, {"enable_dynamic_chunking": True, "pp_size": 2}, "leave out --enable-dynamic-chunking"),
    ("0.5.9", DECODE, {"speculative_algorithm": "EAGLE"}, "leave out --speculative-algorithm"),
    ("0.5.9", DECODE, {"enable_torch_compile": True, "device": "cpu"}, "leave out --enable-torch-compile"),
    ("0.5.10", EXTEND, {"disable_piecewise_cuda_graph": False}, "pass --disable-piecewise-cuda-graph"),
    ("0.5.10", EXTEND, {"disable_piecewise_cuda_graph": False, **ENFORCED}, "leave out --enforce-piecewise-cuda-graph"),
    ("0.5.15", DECODE, CONFIG_WINS, "leave out --cuda-graph-config (through slime: --sglang-cuda-graph-config)"),
    ("0.5.15", EXTEND, CONFIG_WINS, "leave out --cuda-graph-config"),
    ("0.5.15", ALL, CONFIG_WINS, "leave out --cuda-graph-config"),
    ("0.5.15", DECODE, CONFIG_GIVEN, "leave out --cuda-graph-config"),
    ("0.5.15", EXTEND, CONFIG_GIVEN, "pass --cuda-graph-backend-prefill disabled"),
    (
        "0.5.15",
        EXTEND,
        {**CONFIG_WINS, "cuda_graph_backend_prefill": "full"},
        "pass --cuda-graph-backend-prefill disabled",
    ),
    ("0.5.15", DECODE, {"cuda_graph_config": GRAPHS_0_5_14}, "pass --cuda-graph-backend-decode disabled"),
    ("0.5.15", EXTEND, {"cuda_graph_config": GRAPHS_0_5_14}, "pass --cuda-graph-backend-prefill disabled"),
    ("0.5.15", EXTEND, {"cuda_graph_config": None}, "pass --cuda-graph-backend-prefill disabled"),
    ("0.5.15", EXTEND, {"_resolved_overrides": [("a", {"disable_radix_cache": False})]}, "pass --disable-radix-cache"),
    ("0.5.15", EXTEND, {"msprobe_dump_config": "c.json"}, "leave out --msprobe-dump-config"),
    ("0.5.15", EXTEND, {"disaggregation_mode": "decode"}, "rollout.decode.modes of config.json"),
    ("0.5.15", DECODE, {"disaggregation_mode": "prefill"}, "rollout.prefill.modes"),
]


@pytest.mark.parametrize(("version", "modes", "changed", "sentence"), SPOILED)
def test_one_sentence_for_one_setting(version: str, modes: frozenset[str], changed: Fields, sentence: str) -> None:
    (only,) = said({**SILENT[version], **changed}, modes)
    assert sentence in only
    assert "\n" not in only


HARMLESS: list[tuple[str, frozenset[str], Fields]] = [
    ("0.5.9", EXTEND, {"disable_cuda_graph": False}),  # decode forwards only
    ("0.5.9", DECODE, {"disable_radix_cache": False, "chunked_prefill_size": 8192}),
    ("0.5.9", DECODE, {"enable_torch_compile": True, "device": "cuda"}),  # compiled where it is captured, and it is not
    ("0.5.9", DECODE, {"disable_cuda_graph": False, "device": "cpu"}),
    ("0.5.9", ALL, {"enable_dynamic_chunking": True, "pp_size": 1}),
    ("0.5.10", EXTEND, {"disable_piecewise_cuda_graph": False, "device": "cpu"}),
    ("0.5.10", EXTEND, {"disable_piecewise_cuda_graph": False, "device": "cpu", **ENFORCED}),
    ("0.5.10", DECODE, {"disable_piecewise_cuda_graph": False, **ENFORCED}),
    ("0.5.15", ALL, {**CONFIG_WINS, "device": "cpu"}),
    ("0.5.15", ALL, {"cuda_graph_backend_decode": "disabled", "cuda_graph_backend_prefill": "disabled"}),
    ("0.5.15", DECODE, {**CONFIG_WINS, "cuda_graph_config": {"decode": {"backend": "disabled"}, "prefill": {}}}),
    ("0.5.15", EXTEND, {"cuda_graph_config": None, "disable_cuda_graph": True}),
    ("0.5.15", EXTEND, {"cuda_graph_config": None, "disable_prefill_cuda_graph": True}),
    ("0.5.15", EXTEND, {"cuda_graph_config": None, "cuda_graph_backend_prefill": "disabled"}),
    ("0.5.15", EXTEND, {"disable_radix_cache": False, "_resolved_overrides": [("a", {"disable_radix_cache": True})]}),
    ("0.5.15", DECODE, {"disaggregation_mode": "decode"}),
    ("0.5.15", EXTEND, {"disaggregation_mode": "prefill"}),
]


@pytest.mark.parametrize(("version", "modes", "changed"), HARMLESS)
def test_what_takes_nothing_from_the_dump_is_not_warned_about(
    version: str, modes: frozenset[str], changed: Fields
) -> None:
    assert said({**SILENT[version], **changed}, modes) == ()


def test_the_last_decision_counts() -> None:
    decisions = [("one", {"disable_radix_cache": False}), ("two", {"disable_radix_cache": True})]
    assert said({**SILENT["0.5.15"], "_resolved_overrides": decisions}) == ()
    assert len(said({**SILENT["0.5.15"], "_resolved_overrides": decisions[::-1]})) == 1


@pytest.mark.parametrize(("level", "value", "count"), [("L1", "0", 1), ("mix", "", 1), ("L1", "1", 0), ("L0", "0", 0)])
def test_compiled_functions_with_operators(monkeypatch: pytest.MonkeyPatch, level: str, value: str, count: int) -> None:
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", value)
    warned = said(SILENT["0.5.9"], level=level)
    assert len(warned) == count
    assert all("set TORCHDYNAMO_DISABLE=1" in sentence for sentence in warned)


class Hostile:
    def __getattr__(self, name: str) -> object:
        raise AttributeError(name) if name.startswith("__") else RuntimeError(name)


class HostileBool:
    def __bool__(self) -> bool:
        raise RuntimeError


@pytest.mark.parametrize("server_args", [None, object(), {}, 3, Hostile(), SimpleNamespace(warmups=HostileBool())])
def test_anything_may_stand_for_server_args(server_args: object) -> None:
    assert partial_dump_warnings(server_args, ALL, "L0") == ()


FIELDS = sorted({setting.field for setting in SETTINGS if setting.field} | {"pp_size", "_resolved_overrides", "device"})
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.builds(Hostile) | st.builds(HostileBool),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["decode", "backend", "x"]), inner),
    max_leaves=4,
)


@given(
    fields=st.dictionaries(st.sampled_from(FIELDS), VALUES),
    modes=st.frozensets(st.sampled_from(["extend", "decode", "all"])),
    level=st.sampled_from([*sorted(EVERY_LEVEL), "other"]),
)
def test_no_value_of_any_field_raises(fields: Fields, modes: frozenset[str], level: str) -> None:
    sentences = partial_dump_warnings(SimpleNamespace(**fields), modes, level)
    assert all(isinstance(sentence, str) and sentence for sentence in sentences)
    assert len(sentences) == len(set(sentences))


def test_a_field_that_cannot_be_looked_at_hides_no_other() -> None:
    (only,) = said({**SILENT["0.5.9"], "warmups": HostileBool(), "disable_radix_cache": False})
    assert "pass --disable-radix-cache" in only


@pytest.mark.parametrize(
    ("version", "what"),
    [
        ("0.3.6", "pass --chunked-prefill-size 1048576"),
        ("0.2.10", "leave out --chunked-prefill-size"),
        ("x", "-1"),
        (3, "-1"),
    ],
)
def test_the_flag_is_that_of_the_running_version(monkeypatch: pytest.MonkeyPatch, version: object, what: str) -> None:
    monkeypatch.setitem(sys.modules, "sglang", SimpleNamespace(__version__=version))
    (only,) = said({**SILENT["0.3.0"], "chunked_prefill_size": 8192})
    assert what in only


@pytest.mark.parametrize("row", [row for row in SETTINGS if row.partial], ids=lambda row: f"{row.concern} {row.since}")
def test_each_setting_that_is_checked_says_what_to_do(row: Setting) -> None:
    assert row.state
    assert row.words or row.avoid or row.environment or row.remedy
