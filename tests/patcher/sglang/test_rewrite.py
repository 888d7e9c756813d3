"""The invariants of SGLang's patch, on whole files of every shape."""

import pytest

from probe_patch.debuggers import DEBUGGERS, DebuggerName
from probe_patch.patcher.request import Request
from probe_patch.patcher.rewrite import Found, apply, inspect, strip
from tests.harness.model_runner import FILE_NAME, load_model_runner
from tests.patcher.sglang.small_runner import SMALL_RUNNER, STAND_INS, edited, run_batches

PLAIN = SMALL_RUNNER.encode()
EFFECTIVE = Request(())


def patched(source: bytes, request: Request = EFFECTIVE) -> bytes:
    return apply(source, request, FILE_NAME).source


SHAPES = {
    "plain": PLAIN,
    "crlf": SMALL_RUNNER.replace("\n", "\r\n").encode(),
    "cr": SMALL_RUNNER.replace("\n", "\r").encode(),
    "tabs": SMALL_RUNNER.replace("    ", "\t").encode(),
    "bom": b"\xef\xbb\xbf" + PLAIN,
    "licence before the docstring": b"# A licence.\n# ====\n" + PLAIN,
    "no docstring, no future": SMALL_RUNNER.split("\n", 3)[3].encode(),
    "no final newline": SMALL_RUNNER.rstrip("\n").encode(),
    "latin-1": b"# -*- coding: latin-1 -*-\n# \xe9\n" + PLAIN,
    "a base class": edited(("class ModelRunner:", "class ModelRunner(Output):")),
    "a decorated class": edited(("class ModelRunner:", "@timer\nclass ModelRunner:")),
    "decorated methods": edited(
        ("    def __init__(", "    @timer  # how long\n    def __init__("),
        ("    def forward(", "    @timer\n    # it takes\n    @with_defer(lambda: None)\n    def forward("),
    ),
    "another name for the batch": edited(
        (
            "def forward(self, forward_batch, skip_attn_backend_init=False)",
            "def forward(self, batch, *, forward_batch='x')",
        )
    ),
    "any arguments": edited(
        (
            "def forward(self, forward_batch, skip_attn_backend_init=False):\n",
            "def forward(self, *batches):\n        (forward_batch,) = batches\n",
        )
    ),
    "a method of the same name elsewhere": edited(
        ("class Output:\n", "class Output:\n    def forward(self, batch): ...\n\n")
    ),
    "a function of the same name inside": edited(
        ("        self.load_model()\n", "        def forward(batch): ...\n        self.load_model()\n")
    ),
    "a parameter list over several lines": edited(
        ("def forward(self, forward_batch, ", "def forward(\n        self,\n        forward_batch,\n        ")
    ),
    "an attribute that only resembles the hook's": edited(
        ("self.seen = []", "self.msprobe_debugger_path = self.seen = []")
    ),
}


@pytest.mark.parametrize("source", SHAPES.values(), ids=SHAPES)
def test_every_shape(source: bytes) -> None:
    result = patched(source)
    assert strip(result, FILE_NAME) == source
    assert patched(result) == result
    assert inspect(source, FILE_NAME) == Found("rollout", False, None)
    assert inspect(result, FILE_NAME) == Found("rollout", True, EFFECTIVE)

    expected = run_batches(load_model_runner(source, None, STAND_INS))
    assert run_batches(load_model_runner(result, None, STAND_INS)) == expected
    on = load_model_runner(result, "1", STAND_INS)
    assert run_batches(on) == expected
    assert on.probe is not None
    assert [name for name, what in on.probe.events if what == "begins"] == ["init", "forward", "forward", "forward"]


def test_the_whole_patch() -> None:
    """Three blocks, and two of them are one decorator each."""
    lines = [line for line in patched(PLAIN).decode().splitlines() if line not in SMALL_RUNNER.splitlines()]
    behind_the_prelude = lines[lines.index("# <<< probe-patch prelude") + 1 :]
    assert behind_the_prelude == [
        "    # >>> probe-patch init",
        "    @_probe_patch_init",
        "    # <<< probe-patch init",
        "    # >>> probe-patch forward",
        "    @_probe_patch_forward",
        "    # <<< probe-patch forward",
    ]


@pytest.mark.parametrize("config", [None, "/a b/c.json", '/it\'s "quoted"\\n\n.json', "/ü/雪.json", "/\udcff.json"])
def test_the_marker_and_the_probe_get_the_config_and_no_phases(config: str | None) -> None:
    applied = apply(PLAIN, Request(("ref",), config), FILE_NAME)
    assert (applied.side, applied.request) == ("rollout", Request((), config))
    assert inspect(applied.source, FILE_NAME).request == Request((), config)
    assert b"phases" not in applied.source
    on = load_model_runner(applied.source, "1", STAND_INS)
    assert on.probe is not None
    assert on.probe.config == config


@pytest.mark.parametrize("debugger", DEBUGGERS)
def test_the_marker_and_the_probe_get_the_debugger(debugger: DebuggerName) -> None:
    applied = apply(PLAIN, Request(debugger=debugger), FILE_NAME)
    assert inspect(applied.source, FILE_NAME).request == Request((), debugger=debugger)
    probe = load_model_runner(applied.source, "1", STAND_INS).probe
    assert probe is not None
    assert probe.debugger == debugger
    assert load_model_runner(applied.source, "0", STAND_INS).probe is None


def test_phases_make_no_difference() -> None:
    assert patched(PLAIN, Request(("ref",))) == patched(PLAIN, Request()) == patched(PLAIN)


def test_a_marker_with_phases_was_changed_by_hand() -> None:
    marker = b'# >>> probe-patch prelude {"version": "'
    result = patched(PLAIN).replace(marker, marker.replace(b'{"', b'{"phases": "ref", "'))
    assert inspect(result, FILE_NAME) == Found("rollout", True, None)
    assert patched(result) == patched(PLAIN)


@pytest.mark.parametrize("name", [FILE_NAME, "runner.py", "copy/of/model_runner.py.orig"])
def test_it_is_known_by_its_class_whatever_its_name(name: str) -> None:
    assert apply(PLAIN, Request(), name).side == "rollout"


def test_a_file_that_no_longer_parses_is_known_by_its_name_and_can_be_stripped() -> None:
    broken = patched(PLAIN) + b"def half(\n"
    assert inspect(broken, "a/model_runner.py") == Found("rollout", True, EFFECTIVE)
    assert strip(broken, FILE_NAME) == PLAIN + b"def half(\n"


def test_its_one_note_leads_to_the_flags() -> None:
    assert apply(PLAIN, Request(), FILE_NAME).notes == (
        "what its server must be started with for a complete dump: probe-patch launch-args",
    )
