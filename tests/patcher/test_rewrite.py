"""The invariants of the patch, on whole files."""

import itertools
from pathlib import Path

import pytest

from probe_patch.dump_format import Phase
from probe_patch.errors import Refused
from probe_patch.patcher.request import ALL_PHASES, Request
from probe_patch.patcher.rewrite import Found, apply, inspect, strip
from probe_patch.resources import data_folder
from tests.patcher.small_actor import SMALL_ACTOR, edited

SUBSETS: list[tuple[Phase, ...]] = [subset for size in (1, 2, 3) for subset in itertools.combinations(ALL_PHASES, size)]
FIXTURE_ACTORS = sorted((data_folder("fixtures") / "slime").glob("*/*/backends/megatron_utils/actor.py"))


def patched(source: bytes, *phases: Phase) -> bytes:
    return apply(source, Request(phases or ALL_PHASES), "actor.py").source


def check_invariants(source: bytes, phases: tuple[Phase, ...]) -> bytes:
    result = patched(source, *phases)
    assert result != source
    assert strip(result, "actor.py") == source
    assert patched(result, *phases) == result
    assert inspect(result, "actor.py") == Found("train", True, Request(phases))
    assert inspect(source, "actor.py") == Found("train", False, None)
    added = [line for line in result.splitlines(keepends=True) if line not in source.splitlines(keepends=True)]
    assert added, "nothing was added"
    return result


def test_there_is_a_fixture_for_every_era() -> None:
    assert {path.parents[3].name for path in FIXTURE_ACTORS} == {"E3", "E5", "E7", "E10", "E12", "E14", "E15", "miles"}


@pytest.mark.parametrize("path", FIXTURE_ACTORS, ids=lambda path: path.parents[3].name)
@pytest.mark.parametrize("phases", SUBSETS, ids=",".join)
def test_every_fixture_for_every_subset_of_phases(path: Path, phases: tuple[Phase, ...]) -> None:
    check_invariants(path.read_bytes(), phases)


CRLF = SMALL_ACTOR.replace("\n", "\r\n")
SHAPES = {
    "plain": SMALL_ACTOR.encode(),
    "crlf": CRLF.encode(),
    "cr": SMALL_ACTOR.replace("\n", "\r").encode(),
    "mixed newlines": SMALL_ACTOR.replace("\n", "\r\n", 20).encode(),
    "tabs": SMALL_ACTOR.replace("    ", "\t").encode(),
    "bom": b"\xef\xbb\xbf" + SMALL_ACTOR.encode(),
    "bom and crlf": b"\xef\xbb\xbf" + CRLF.encode(),
    "no docstring": SMALL_ACTOR.split("\n", 1)[1].encode(),
    "no docstring, bom": b"\xef\xbb\xbf" + SMALL_ACTOR.split("\n", 1)[1].encode(),
    "bom before the first statement": b"\xef\xbb\xbf" + SMALL_ACTOR.split("\n", 3)[3].encode(),
    "try with finally only": edited(
        (
            SMALL_ACTOR[SMALL_ACTOR.index('            with timer("actor_train")') :].rstrip(),
            '            try:\n                with timer("actor_train"):\n                    train()\n'
            "            finally:\n                pass",
        )
    ),
    "loops inside the timed block": edited(
        (
            "                train(rollout_id, self.model,",
            "                for x in []:\n                    continue\n                train(rollout_id, self.model,",
        )
    ),
    "another argument that reads ref_": edited(
        ('b(data_iterator, num_microbatches, store_prefix=""', 'b(f("ref_"), num_microbatches, store_prefix=""')
    ),
    "bytes where a docstring would be": edited(('"""Build the model."""', 'b"Build the model."')),
    "f-string where a docstring would be": edited(('"""Build the model."""', '"Build " f"the model."')),
    "a statement over several lines before the phase's on its line": edited(
        (
            'rollout_data.update(self.compute_log_prob(data_iterator, num_microbatches, store_prefix=""))',
            "f(\n 1\n); self.compute_log_prob([], []); f(\n 2\n)",
        ),
    ),
    "ref_ by position, another prefix by name": edited(
        ('b(data_iterator, num_microbatches, store_prefix=""', 'b("ref_", num_microbatches, store_prefix=""')
    ),
    "latin-1": b"# -*- coding: latin-1 -*-\n# \xe9\n" + SMALL_ACTOR.encode(),
    "shebang and cookie": b"#!/usr/bin/env python\n# vim: set fileencoding=utf-8 :\n" + SMALL_ACTOR.encode(),
    "shift-jis": b"# coding: shift_jis\n# \x83\x5c\x94\x5c\n" + SMALL_ACTOR.encode(),
    "form feed": edited(
        ("\n\nclass Megatron", "\n\x0c\nclass Megatron"), ("    def train_actor", "\x0c    def train_actor")
    ),
    "no final newline": SMALL_ACTOR.rstrip("\n").encode(),
    "no final newline, crlf": CRLF.rstrip("\r\n").encode(),
    "blank lines at the end": SMALL_ACTOR.encode() + b"\n   \n\n",
    "comment at the end": SMALL_ACTOR.encode() + b"                # the end",
    "future and import on one line": edited(
        ("from __future__ import annotations\n", "from __future__ import annotations; import sys\n")
    ),
    "docstring and import on one line": edited(
        ('"""A small actor."""\nfrom __future__ import annotations\n', '"""A small actor."""; import sys\n')
    ),
    "no future": edited(("from __future__ import annotations\n\nimport os\n", "import os\n")),
    "first statement is decorated": edited(
        ("from __future__ import annotations\n\nimport os\n", "@print\nclass First: ...\n\n\nimport os\n")
    ),
    "async": edited(("    def train_actor", "    async def train_actor")),
    "decorated rollout": edited(("    def train_actor", "    @timer  # how long\n    # it takes\n    def train_actor")),
    "init without docstring": edited(('        """Build the model."""\n', "")),
    "init begins with a decorated function": edited(
        ('        """Build the model."""\n', "        @print\n        def inner(): ...\n")
    ),
    "init is a docstring": edited(
        (
            SMALL_ACTOR[SMALL_ACTOR.index("        if args.debug_") : SMALL_ACTOR.index("    def _switch_model")],
            "\n",
        )
    ),
    "keyword-only role": edited(("def init(self, args, role, ", "def init(self, args, *, role, ")),
    "continuation lines": edited(
        (
            'rollout_data.update(self.compute_log_prob(data_iterator, num_microbatches, store_prefix=""))',
            "log_probs = \\\n  self.compute_log_prob(data_iterator, \\\n num_microbatches)",
        )
    ),
    "prefix by position": edited(
        ('b(data_iterator, num_microbatches, store_prefix=""', 'b(data_iterator, num_microbatches, ""'),
        ('num_microbatches, store_prefix="teacher_"', 'num_microbatches, "teacher_"'),
    ),
    "several statements on the line": edited(
        (
            'rollout_data.update(self.compute_log_prob(data_iterator, num_microbatches, store_prefix=""))',
            "x = 1; self.compute_log_prob([], []); y = 2",
        ),
    ),
    "assigned": edited(
        (
            'rollout_data.update(self.compute_log_prob(data_iterator, num_microbatches, store_prefix=""))',
            "self.old: dict = self.compute_log_prob([], [])",
        ),
    ),
    "returned": edited(
        ("                train(rollout_id, self.model,", "                return train(rollout_id, self.model,"),
    ),
    "train through its module": edited(
        (
            "                train(rollout_id, self.model,",
            "                self.n = megatron_utils.train(rollout_id, self.model,",
        )
    ),
    "timer with a task id": edited(('timer("actor_train")', 'timer(self._task_id, "actor_train")')),
    "with on one line": edited(
        (
            'with timer("actor_train"):\n                train(rollout_id, self.model,',
            'with timer("actor_train"): train(rollout_id, self.model,',
        )
    ),
    "phases in train": edited(
        (
            "        return self.train_actor(rollout_id, {})\n\n    def train_actor(self, rollout_id, rollout_data):\n",
            "        rollout_data = {}\n",
        )
    ),
}


@pytest.mark.parametrize("source", SHAPES.values(), ids=SHAPES)
def test_every_shape_for_every_subset_of_phases(source: bytes) -> None:
    for phases in SUBSETS:
        check_invariants(source, phases)


def test_other_phases_replace_the_ones_before() -> None:
    source = SMALL_ACTOR.encode()
    assert patched(patched(source, "ref", "actor"), "old") == patched(source, "old")


def test_a_patch_of_another_version_is_replaced() -> None:
    source = SMALL_ACTOR.encode()
    older = apply(source, Request(("old",), None, "0.0.1"), "actor.py").source
    assert inspect(older, "actor.py").request == Request(("old",), None, "0.0.1")
    assert patched(older) == patched(source)


def test_edits_elsewhere_survive_a_revert() -> None:
    source = SMALL_ACTOR.encode()
    assert strip(patched(source).replace(b"return 1", b"return 2"), "actor.py") == source.replace(
        b"return 1", b"return 2"
    )


def test_a_file_that_no_longer_parses_can_still_be_stripped() -> None:
    broken = patched(SMALL_ACTOR.encode()) + b"def half(\n"
    assert strip(broken, "actor.py") == SMALL_ACTOR.encode() + b"def half(\n"
    with pytest.raises(Refused, match="does not parse"):
        patched(broken)


@pytest.mark.parametrize("config", ["/a b/c.json", '/it\'s "quoted"\\n\n.json', "/ü/雪.json", "/\udcff.json"])
def test_any_config_path_comes_back_out_of_the_marker(config: str) -> None:
    result = apply(SMALL_ACTOR.encode(), Request(ALL_PHASES, config), "actor.py").source
    assert strip(result, "actor.py") == SMALL_ACTOR.encode()
    assert inspect(result, "actor.py").request == Request(ALL_PHASES, config)


def test_notes_name_the_flags_of_this_file() -> None:
    assert any(
        "no ref and no old phase runs in supervised" in note
        for note in apply(SMALL_ACTOR.encode(), Request(), "a").notes
    )
    assert not any("old" in note for note in apply(SMALL_ACTOR.encode(), Request(("actor",)), "a").notes)
    e15 = next(path for path in FIXTURE_ACTORS if path.parents[3].name == "E15")
    assert any("--num-steps-per-rollout 2" in note for note in apply(e15.read_bytes(), Request(), "a").notes)
    e12 = next(path for path in FIXTURE_ACTORS if path.parents[3].name == "E12")
    assert not any("--num-steps-per-rollout" in note for note in apply(e12.read_bytes(), Request(), "a").notes)
