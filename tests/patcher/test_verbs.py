"""The verbs over several files, in any order: each file is one whole valid state, and a revert ends in the original."""

import functools
import itertools
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from probe_patch.debuggers import DEBUGGERS, DebuggerName
from probe_patch.dump_format import Phase
from probe_patch.errors import Refused, SystemFailed
from probe_patch.patcher import rewrite, verbs
from probe_patch.patcher.discovery import Target
from probe_patch.patcher.request import ALL_PHASES, Request
from probe_patch.patcher.result import Result, State
from probe_patch.patcher.verbs import Expectation
from tests.patcher.small_actor import SMALL_ACTOR

PLAIN = SMALL_ACTOR.encode()
SOURCES = {
    "plain.py": PLAIN,
    "crlf.py": PLAIN.replace(b"\n", b"\r\n"),
    "open.py": PLAIN.rstrip(b"\n"),
    "bom.py": b"\xef\xbb\xbf" + PLAIN.replace(b"    ", b"\t"),
}
SUBSETS: list[tuple[Phase, ...]] = [subset for size in (1, 2, 3) for subset in itertools.combinations(ALL_PHASES, size)]
REQUESTS = [
    Request(phases, config, version)
    for phases in SUBSETS
    for config, version in ((None, Request().version), ("/a b/ü.json", Request().version), (None, "0.0.1"))
]
REQUESTS += [Request(phases, debugger="msprobe") for phases in SUBSETS]
USERS_EDIT = (b"return 1", b"return 2  # the user's own")


def write(folder: Path) -> dict[str, Target]:
    for name, content in SOURCES.items():
        (folder / name).write_bytes(content)
    return {name: Target(folder / name, name) for name in SOURCES}


@functools.cache
def patched(name: str, request: Request) -> bytes:
    return rewrite.apply(SOURCES[name], request, name).source


class Sequences(RuleBasedStateMachine):
    """Any sequence of verbs on any of the files; the model is what each is patched for, None where it is not."""

    @initialize()
    def lay_out(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.targets = write(self.folder)
        self.patched_for: dict[str, Request | None] = dict.fromkeys(SOURCES)

    def teardown(self) -> None:
        everything = list(self.targets.values())
        assert all(result.state is State.UNPATCHED for result in verbs.revert(everything, dry_run=False))
        contents = {path.name: path.read_bytes() for path in self.folder.iterdir()}
        shutil.rmtree(self.folder)
        assert contents == SOURCES

    names = st.lists(st.sampled_from(sorted(SOURCES)), min_size=1, unique=True)

    @rule(names=names, request=st.sampled_from(REQUESTS), dry_run=st.booleans())
    def apply(self, names: list[str], request: Request, dry_run: bool) -> None:
        results = verbs.apply([self.targets[name] for name in names], request, dry_run)
        for name, result in zip(names, results, strict=True):
            assert (result.state, result.request, result.error) == (State.PATCHED, request, None)
            assert result.changed == (self.patched_for[name] != request)
            assert result.after == patched(name, request)
            if not dry_run:
                self.patched_for[name] = request

    @rule(names=names, dry_run=st.booleans())
    def revert(self, names: list[str], dry_run: bool) -> None:
        results = verbs.revert([self.targets[name] for name in names], dry_run)
        for name, result in zip(names, results, strict=True):
            assert (result.state, result.after, result.notes) == (State.UNPATCHED, SOURCES[name], ())
            assert result.changed == (self.patched_for[name] is not None)
            if not dry_run:
                self.patched_for[name] = None

    @rule(phases=st.sampled_from(SUBSETS) | st.none(), debugger=st.sampled_from(DEBUGGERS) | st.none())
    def check(self, phases: tuple[Phase, ...] | None, debugger: DebuggerName | None) -> None:
        checked = verbs.check(list(self.targets.values()), Expectation.PATCHED, phases, debugger)
        for name, result in self._by_name(checked):
            request = self.patched_for[name]
            expected = (
                request is not None
                and request.version == Request().version
                and phases in (None, request.phases)
                and debugger in (None, request.debugger)
            )
            assert result.as_expected == expected

    @rule()
    def check_clean(self) -> None:
        for expectation in (Expectation.CLEAN, Expectation.CAN_APPLY):
            for name, result in self._by_name(verbs.check(list(self.targets.values()), expectation, None)):
                assert result.as_expected == (self.patched_for[name] is None)

    @rule()
    def status(self) -> None:
        for name, result in self._by_name(verbs.status(list(self.targets.values()))):
            request = self.patched_for[name]
            assert result.request == request
            assert result.state is (
                State.UNPATCHED
                if request is None
                else State.PATCHED
                if request.version == Request().version
                else State.OUTDATED
            )

    @invariant()
    def every_file_is_what_the_model_says(self) -> None:
        for name, request in self.patched_for.items():
            expected = SOURCES[name] if request is None else patched(name, request)
            assert (self.folder / name).read_bytes() == expected
        assert {path.name for path in self.folder.iterdir()} == set(SOURCES)

    def _by_name(self, results: list[Result]) -> list[tuple[str, Result]]:
        return list(zip(self.targets, results, strict=True))


TestSequences = Sequences.TestCase
TestSequences.settings = settings(max_examples=8, stateful_step_count=10, deadline=None)


@pytest.fixture
def targets(tmp_path: Path) -> list[Target]:
    return list(write(tmp_path).values())


@pytest.mark.parametrize("phases", SUBSETS, ids=",".join)
def test_a_day_in_the_life_of_a_file(targets: list[Target], phases: tuple[Phase, ...]) -> None:
    verbs.apply(targets, Request(phases), dry_run=False)
    assert all(result.as_expected for result in verbs.check(targets, Expectation.PATCHED, phases))
    verbs.apply(targets, Request(("old",)), dry_run=False)
    assert all(result.as_expected for result in verbs.check(targets, Expectation.PATCHED, ("old",)))
    verbs.revert(targets, dry_run=False)
    assert {target.shown: target.path.read_bytes() for target in targets} == SOURCES


def test_the_users_edits_survive_every_verb(targets: list[Target]) -> None:
    verbs.apply(targets, Request(), dry_run=False)
    for target in targets:
        target.path.write_bytes(target.path.read_bytes().replace(*USERS_EDIT))
    verbs.apply(targets, Request(("ref",)), dry_run=False)
    verbs.revert(targets, dry_run=False)
    for target in targets:
        assert target.path.read_bytes() == SOURCES[target.shown].replace(*USERS_EDIT)


def test_a_refused_file_keeps_the_others_as_they_are(targets: list[Target]) -> None:
    targets[2].path.write_bytes(b"x = (")
    results = verbs.apply(targets, Request(), dry_run=False)
    assert [result.state for result in results] == [State.UNPATCHED] * 2 + [State.REFUSED, State.UNPATCHED]
    assert [type(result.error) for result in results] == [type(None), type(None), Refused, type(None)]
    assert not any(result.changed for result in results)
    assert all(target.path.read_bytes() == SOURCES[target.shown] for target in targets if target is not targets[2])


def test_a_file_that_goes_away_keeps_the_others_as_they_are(targets: list[Target]) -> None:
    targets[1].path.unlink()
    results = verbs.apply(targets, Request(), dry_run=False)
    assert isinstance(results[1].error, SystemFailed)
    assert all(target.path.read_bytes() == SOURCES[target.shown] for target in targets if target is not targets[1])


def test_notes_of_the_way_a_file_was_found_come_first(tmp_path: Path) -> None:
    write(tmp_path)
    target = Target(tmp_path / "plain.py", "plain.py", ("found so",))
    assert verbs.status([target])[0].notes == ("found so",)
    assert verbs.apply([target], Request(), dry_run=False)[0].notes[0] == "found so"
    (tmp_path / "plain.py").write_bytes(b"x = (")
    assert verbs.apply([target], Request(), dry_run=False)[0].notes == ("found so",)


BETWEEN = [
    (b"_probe_patch.start(self, 'ref')\n", b"_probe_patch.start(self, 'ref')\n  print('mine')\n", ["print('mine')"]),
    (b"_probe_patch.start(self, 'ref')\n", b"_probe_patch.start(self, 'REF')\n", None),
    (b"_probe_patch.start(self, 'ref')\n", b"_probe_patch.start(self, 'ref')\n\n\n", []),
    (b"_ProbePatch = None\n", b"_ProbePatch = None\nimport os\nimport os\n", ["import os", "import os"]),
]


@pytest.mark.parametrize("verb", ["apply", "revert"])
@pytest.mark.parametrize(("ours", "edited", "lines"), BETWEEN)
def test_lines_between_our_markers_are_named(
    tmp_path: Path, verb: str, ours: bytes, edited: bytes, lines: list[str] | None
) -> None:
    target = write(tmp_path)["plain.py"]
    source = patched("plain.py", Request())
    assert source.count(ours) == 1
    target.path.write_bytes(source.replace(ours, edited))
    if verb == "revert":
        (result,) = verbs.revert([target], dry_run=False)
    else:
        (result,) = verbs.apply([target], Request(), dry_run=False)
    note = "takes away a line that was added between its markers by hand: "
    named = [text.removeprefix(note) for text in result.notes if text.startswith(note)]
    assert named == (["if _probe_patch: _probe_patch.start(self, 'REF')"] if lines is None else lines)
    assert target.path.read_bytes() == (PLAIN if verb == "revert" else source)


def test_an_older_versions_lines_are_not_taken_for_the_users(tmp_path: Path) -> None:
    target = write(tmp_path)["plain.py"]
    older = patched("plain.py", Request(version="0.0.1")).replace(b"_probe_patch.start(", b"_probe_patch.begin(")
    target.path.write_bytes(older)
    assert verbs.revert([target], dry_run=False)[0].notes == ()
    assert target.path.read_bytes() == PLAIN
