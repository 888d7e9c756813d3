import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe_patch.config import Overrides, load_config, parse_config
from probe_patch.config.indexes import LARGEST_INDEX, expand_indexes
from probe_patch.errors import ConfigError

MODULE = "Module.layers.0.Block.forward.0"
FUNCTION = "Functional.linear.0.backward"


def text_of(**keys: object) -> str:
    return json.dumps({"level": "L0", "dump_path": "/dump"} | keys)


EVERY_KEY_AT_ITS_DEFAULT = text_of(
    task="statistics",
    rank=[],
    step=[],
    extra_info=True,
    async_dump=False,
    dump_enable=True,
    precision="low",
    risk_level="FOCUS",
    custom_op_namespaces=["_C_ascend"],
    load={},
    seed=1234,
    is_deterministic=False,
    enable_dataloader=False,
    statistics={
        "scope": [],
        "list": [],
        "tensor_list": [],
        "data_mode": ["forward"],
        "summary_mode": "statistics",
        "slice": [],
        "request_id": None,
    },
    tensor={"scope": [], "list": [], "data_mode": ["all"], "bench_path": "", "diff_nums": 1},
    acc_check={"white_list": [], "black_list": [], "error_data_path": "./"},
    rollout={"modes": ["extend"], "min_tokens": 2},
)


def test_every_known_key_at_its_default_is_accepted_in_silence() -> None:
    loaded = parse_config(EVERY_KEY_AT_ITS_DEFAULT, "config.json")
    assert loaded.warnings == ()
    assert (loaded.config.step, loaded.config.rank, loaded.config.level) == ((), (), "L0")


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([], ()),
        ([3, 1, 3], (1, 3)),
        (["3"], (3,)),
        (["3-5", 4, 0], (0, 3, 4, 5)),
        ([0, LARGEST_INDEX], (0, LARGEST_INDEX)),
        (["7-7"], (7,)),
    ],
)
def test_step_and_rank_take_numbers_and_ranges(items: list[int | str], expected: tuple[int, ...]) -> None:
    config = parse_config(text_of(step=items, rank=items), "config.json").config
    assert (config.step, config.rank) == (expected, expected)


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 9)), max_size=5))
def test_ranges_are_inclusive_and_in_any_order(ranges: list[tuple[int, int]]) -> None:
    items: list[int | str] = [f"{first}-{first + more}" for first, more in ranges]
    expected = {index for first, more in ranges for index in range(first, first + more + 1)}
    assert expand_indexes(items) == tuple(sorted(expected))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"dump_path": }', "c.json:1:15: not JSON: Expecting value"),
        ('{\n "dump_path" 1}', "c.json:2:14: not JSON: Expecting ':' delimiter"),
        ('["dump_path"]', 'c.json: must hold a JSON object {...}, not ["dump_path"]'),
        ('{"dump_path": "a", "dump_path": "b"}', 'c.json: the key "dump_path" stands there twice; keep one'),
        ('{"dump_path": "a", "statistics": {"list": [], "list": []}}', '"list" stands there twice'),
        ('{"level": "L0"}', "c.json: dump_path is missing; write where the dump shall go"),
        (text_of(dump_path=""), "c.json: dump_path is empty"),
        (text_of(dump_path="/a\0b"), "c.json: dump_path: a path cannot hold the character NUL; leave it out"),
        (text_of(dump_path="~/d"), 'c.json: dump_path: "~/d" is taken literally; write the path in full'),
        (text_of(dump_path="/d/$USER"), 'c.json: dump_path: "/d/$USER" is taken literally; write the path in full'),
        (text_of(dump_path="$HOME/d"), 'c.json: dump_path: "$HOME/d" is taken literally; write the path in full'),
        (text_of(dump_path=1), "c.json: dump_path must be a string, not 1"),
        (text_of(step=3), 'c.json: step must be a list such as [0, "3-5"], not 3'),
        (text_of(step=["5-3"]), 'c.json: step: the range "5-3" runs backwards; write "3-5"'),
        (text_of(rank=["x"]), 'c.json: rank: "x" is neither a whole number nor a range'),
        (text_of(rank=[True]), 'c.json: rank may hold whole numbers and ranges like "3-5" only'),
        (text_of(step=[1.5]), 'c.json: step may hold whole numbers and ranges like "3-5" only'),
        (text_of(step=[-1]), "c.json: step: -1 is outside 0 to 1000000"),
        (text_of(step=["0-1000001"]), "c.json: step: 0-1000001 is outside 0 to 1000000"),
        (text_of(extra_info="yes"), 'c.json: extra_info must be true or false, not "yes"'),
        (text_of(statistics=[]), "c.json: statistics must be an object {...}, not []"),
        (text_of(statistics={"data_mode": "all"}), 'statistics.data_mode must be a list [...], not "all"'),
        (text_of(statistics={"data_mode": ["all", "input"]}), 'statistics.data_mode: "all" stands alone'),
        (
            text_of(statistics={"data_mode": ["sideways"]}),
            "statistics.data_mode.0 must be 'all', 'forward', 'backward'",
        ),
        (text_of(statistics={"scope": [MODULE]}), "statistics.scope: must hold two entries, the first and the last"),
        (
            text_of(statistics={"scope": ["a", MODULE]}),
            'statistics.scope: "a" is no entry of a dump; write one such as',
        ),
        (text_of(statistics={"list": [""]}), 'statistics.list: "" is no part of a name'),
        (text_of(statistics={"list": ["name-regex(.*)"]}), 'statistics.list: "name-regex(.*)" is no part of a name'),
        (
            text_of(statistics={"summary_mode": []}),
            'statistics.summary_mode must be one of "statistics", "md5", "xor", or a list of "max", "min"',
        ),
        (text_of(statistics={"summary_mode": "crc"}), 'statistics.summary_mode must be one of "statistics", "md5"'),
        (text_of(statistics={"summary_mode": ["maxx"]}), '"zero_count", "md5", not ["maxx"]'),
        (text_of(statistics={"slice": [{"dim": -1}]}), "statistics.slice.0.dim must be greater than or equal to 0"),
        (text_of(statistics={"slice": [{"dim": 0}]}), "statistics.slice.0: names no part; give begin, end, or both"),
        (text_of(statistics={"slice": [{"begin": 3, "end": 1}]}), "statistics.slice.0: leaves nothing between begin 3"),
        (text_of(statistics={"request_id": ""}), 'statistics.request_id must not be empty, not ""'),
        (text_of(task="foo"), "c.json: task must be 'statistics', 'tensor', 'structure' or 'nan_check', not \"foo\""),
        (text_of(tensor={"summary_mode": "xor"}), "tensor.summary_mode must be 'statistics' or 'md5', not \"xor\""),
        (text_of(limits={"entries": 0}), "limits.entries must be greater than or equal to 1, not 0"),
        (text_of(level="L9"), "c.json: level must be 'L0', 'L1', 'mix' or 'debug', not \"L9\""),
        (text_of(rollout={"min_tokens": 0}), "c.json: rollout.min_tokens must be greater than or equal to 1, not 0"),
        (text_of(rollout={"modes": []}), "c.json: rollout.modes must hold at least one item, not []"),
        (
            text_of(rollout={"modes": ["prefill"]}),
            "c.json: rollout.modes.0 must be 'extend', 'decode' or 'all', not \"prefill\"",
        ),
        (text_of(rollout={"inputs": "md5"}), "c.json: rollout.inputs must be 'tensor', 'hash' or 'none', not \"md5\""),
        (text_of(rollout={"decode": ["decode"]}), 'c.json: rollout.decode must be an object {...}, not ["decode"]'),
    ],
)
def test_what_is_malformed_is_named_in_one_line(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_config(text, "c.json")
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        (
            {"level": "L2"},
            'level is "L2", which records the kernels of an NPU and is msProbe\'s alone; write ',
        ),
        ({"task": "acc_check"}, 'task is "acc_check", which probe-patch does not do; write "task": "tensor" here and'),
        ({"task": "diff_check"}, 'write "task": "statistics" with "summary_mode": "md5" and compare the two dumps'),
        ({"task": "exception_dump"}, 'it is MindSpore\'s; write "task": "nan_check"'),
        ({"task": "overflow_check"}, 'does not do; write "task": "nan_check"'),
        (
            {"task": "structure", "level": "debug"},
            'goes with the tasks "statistics" and "tensor", not with ',
        ),
        ({"task": "structure", "extra_info": False}, 'task "structure" is stack.json and construct.json'),
        ({"load": {"path": "x"}}, 'load.path is "x", which probe-patch cannot do; write no load section'),
        (
            {"is_deterministic": True},
            "is_deterministic is true, which probe-patch cannot do; write ",
        ),
        ({"enable_dataloader": True}, "enable_dataloader is true, which probe-patch cannot do; write "),
        ({"task": "tensor", "tensor": {"bench_path": "/b"}}, 'tensor.bench_path is "/b", which probe-patch cannot do'),
        ({"task": "tensor", "tensor": {"file_format": "npy"}}, "write no file_format; tensors are .pt files"),
        (
            {"level": "L0", "statistics": {"scope": [FUNCTION, FUNCTION]}},
            'statistics.scope names functions, which level "L0" does not record',
        ),
        (
            {"level": "L1", "statistics": {"scope": [MODULE, MODULE]}},
            'statistics.scope names modules, which level "L1" does not record',
        ),
        (
            {"level": "L1", "task": "tensor", "tensor": {"scope": [MODULE, FUNCTION]}},
            "tensor.scope names one of a module and one of a function, which level",
        ),
    ],
)
def test_what_is_not_served_is_refused_with_what_to_write(keys: dict[str, object], sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_config(text_of(**keys), "c.json")
    assert str(refused.value).startswith("c.json: ")
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("keys", "warning"),
    [
        ({"dump_pth": 1}, "unknown key dump_pth (did you mean dump_path?): it is ignored"),
        ({"statistics": {"summary_mod": 1}}, "unknown key statistics.summary_mod (did you mean summary_mode?)"),
        ({"statistics": {"lst": 1}}, "unknown key statistics.lst (did you mean list?)"),
        (
            {"dump_path": "out/~d"},
            'dump_path "out/~d" is relative: each process takes it from its own working directory',
        ),
        ({"zzz": 1}, "unknown key zzz: it is ignored"),
        ({"level": "L1", "risk_level": "CORE", "statistics": {"list": ["a"]}}, "risk_level has no effect where scope"),
        ({"level": "debug"}, 'level "debug" records what save() is given and nothing else'),
        ({"level": "debug", "task": "tensor"}, 'level "debug" records what save() is given and nothing else'),
        ({"dump_enable": False}, "dump_enable is false: nothing is recorded until it is true here"),
        ({"statistics": {"slice": [{"begin": 1, "step": 2}]}}, "unknown key statistics.slice.0.step"),
        ({"task": "tensor"}, "every tensor is saved, which can fill a disk in minutes"),
        ({"dump_enable": False}, "dump_enable is false: nothing is recorded until it is true here"),
    ],
)
def test_what_is_ignored_is_said(keys: dict[str, object], warning: str) -> None:
    (said,) = parse_config(text_of(**keys), "config.json").warnings
    assert warning in said


SERVED: list[dict[str, object]] = [
    {"level": "L0"},
    {"level": "L1"},
    {"level": "mix"},
    {"task": "structure", "structure": {"list": ["layers.0"]}},
    {"task": "nan_check", "nan_check": {"data_mode": ["forward"]}},
    {"async_dump": True},
    {"dump_enable": True},
    {"strict_json": True},
    {"limits": {"entries": 1, "tensor_mib": 0}},
    {"statistics": {"scope": [MODULE, MODULE]}},
    {"level": "L1", "statistics": {"scope": [FUNCTION, FUNCTION]}},
    {"level": "mix", "statistics": {"scope": [MODULE, FUNCTION]}},
    {"statistics": {"list": ["layers.0", "linear"]}},
    {"statistics": {"tensor_list": ["layers.0"]}},
    {"statistics": {"data_mode": ["backward"]}},
    {"statistics": {"data_mode": ["forward", "output"]}},
    {"statistics": {"data_mode": ["input"]}},
    {"statistics": {"data_mode": []}},
    {"statistics": {"summary_mode": "md5"}},
    {"statistics": {"summary_mode": "xor"}},
    {"statistics": {"summary_mode": ["max", "mean", "nan_count"]}},
    {"statistics": {"slice": [{"dim": 1, "size": 8, "begin": -2}]}},
    {"statistics": {"request_id": "r"}},
    {"task": "statistics", "tensor": {"bench_path": "/b"}},
]


@pytest.mark.parametrize("keys", SERVED, ids=json.dumps)
def test_what_is_served_passes_without_a_word(keys: dict[str, object]) -> None:
    assert parse_config(text_of(**keys), "config.json").warnings == ()


def test_a_missing_level_is_msprobes() -> None:
    loaded = parse_config('{"dump_path": "/d"}', "config.json")
    assert (loaded.config.level, loaded.warnings) == ("L1", ())


def test_overrides_replace_the_files_values_and_are_checked_like_them() -> None:
    config = parse_config(text_of(step=[7]), "c.json", Overrides(dump_path="other", step=range(2))).config
    assert (config.dump_path, config.step) == ("other", (0, 1))
    with pytest.raises(ConfigError, match='level is "L2"'):
        parse_config(text_of(), "c.json", Overrides(level="L2"))
    with pytest.raises(ConfigError, match="step must be a list"):
        parse_config(text_of(), "c.json", Overrides(step=3))  # type: ignore[arg-type]


def test_a_byte_order_mark_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(b"\xef\xbb\xbf" + text_of(step=[4]).encode())
    assert load_config(path).config.step == (4,)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(None, "does not exist; `probe-patch config init` writes"), (b'{"dump_path": "\xff"}', "is not UTF-8 text")],
)
def test_files_that_cannot_be_read(tmp_path: Path, content: bytes | None, sentence: str) -> None:
    path = tmp_path / "config.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError) as refused:
        load_config(path)
    assert str(refused.value).startswith(f"{path} {sentence}")


def test_a_folder_is_no_config(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load_config(tmp_path)


@given(st.text(max_size=40) | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(json.dumps))
def test_any_other_text_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^c\.json:"):
        parse_config(text, "c.json")


def test_reading_a_config_does_not_import_torch() -> None:
    program = "import sys, probe_patch.config as c; c.parse_config(sys.argv[1], 'x'); sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", program, text_of()], check=True)
