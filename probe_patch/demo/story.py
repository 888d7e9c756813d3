"""The demo's plot: run, patch, run off, run on, prove that nothing changed, undo, prove that too.

It prints nothing: it yields what happened, one event at a time, and the command line shows it.
"""

import hashlib
import json
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from probe_patch.config import starter_config
from probe_patch.demo.dumps import DumpRow, Numbers, dump_rows, module_numbers
from probe_patch.demo.fixture import actor_file, lay_out
from probe_patch.demo.runs import RunResult, read_result, run
from probe_patch.errors import SystemFailed
from probe_patch.patcher import verbs
from probe_patch.patcher.discovery import find_targets
from probe_patch.patcher.request import Request

ROLLOUTS = 2
_SHOWN_MODULE = "final_layernorm"


@dataclass(frozen=True)
class Began:
    """A stage began."""

    title: str


@dataclass(frozen=True)
class Progress:
    """A stage goes on."""

    detail: str


@dataclass(frozen=True)
class Ended:
    """A stage ended well, after ``seconds``."""

    outcome: str
    seconds: float


@dataclass(frozen=True)
class Evidence:
    """What the dumps hold."""

    rows: list[DumpRow]
    module: str
    numbers: list[Numbers]


Event = Began | Progress | Ended | Evidence


@dataclass(frozen=True)
class Places:
    """Where the demo works, all below one scratch folder."""

    scratch: Path

    @property
    def tree(self) -> Path:
        return self.scratch / "slime"

    @property
    def config(self) -> Path:
        return self.scratch / "config.json"

    @property
    def dump(self) -> Path:
        return self.scratch / "dump"


def tell(era: str, places: Places) -> Generator[Event, None, None]:
    """Play the demo on the example tree of ``era``.

    Raises:
        SystemFailed: a stage failed, or something that must not change did.
    """
    clock = _Clock()
    yield Began(f"a small slime of era {era}")
    lay_out(era, places.tree)
    hash_before = tree_hash(places.tree)
    yield Ended(f"{places.tree} (sha256 {hash_before[:12]}…)", clock.lap())

    unpatched = yield from _run(clock, "training, unpatched", places, "unpatched", {})

    yield Began("probe-patch apply")
    lines_before = (places.tree / actor_file(era)).read_bytes().count(b"\n")
    results = verbs.apply(find_targets([places.tree]), Request(), dry_run=False)
    _require(len(results) == 1 and results[0].changed, f"apply did not patch {actor_file(era)}")
    added = results[0].after.count(b"\n") - lines_before
    yield Ended(f"{actor_file(era)}: {added} lines added, none changed", clock.lap())

    off = yield from _run(clock, "training, DUMP_ON=0", places, "off", {"DUMP_ON": "0"})
    _require(not any(report.probe_patch_loaded for report in off.reports()), "probe_patch was imported with DUMP_ON=0")
    _require(
        all(report.train_function_is_original for report in off.reports()), "train_actor is wrapped with DUMP_ON=0"
    )

    places.config.write_text(_config(places.dump))
    on_env = {"DUMP_ON": "1", "PROBE_PATCH_CONFIG": str(places.config)}
    on = yield from _run(clock, "training, DUMP_ON=1", places, "on", on_env)
    _require(all(report.probe_patch_loaded for report in on.reports()), "probe_patch did not run with DUMP_ON=1")

    yield Began("losses and updated weights of the three runs")
    _require(unpatched.numbers() == off.numbers() == on.numbers(), "the three runs did not compute the same numbers")
    count = sum(len(report.losses) for report in on.reports())
    yield Ended(f"bit-identical: {count} losses, {len(on.reports())} sets of weights in each", clock.lap())

    rows = dump_rows(places.dump)
    _require(bool(rows), f"no dump appeared in {places.dump}")
    yield Evidence(rows, *module_numbers(rows, _SHOWN_MODULE))

    yield Began("probe-patch revert")
    verbs.revert(find_targets([places.tree]), dry_run=False)
    hash_after = tree_hash(places.tree)
    _require(hash_after == hash_before, f"the tree's hash is {hash_after}, it was {hash_before}")
    yield Ended(f"byte for byte as before (sha256 {hash_after[:12]}…)", clock.lap())


def tree_hash(tree: Path) -> str:
    """SHA-256 over the name, mode and bytes of every file of a tree."""
    digest = hashlib.sha256()
    for path in sorted(path for path in tree.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(tree)}\0{path.stat().st_mode:o}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


class _Clock:
    """Seconds since the lap before."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def lap(self) -> float:
        now = time.monotonic()
        elapsed, self._last = now - self._last, now
        return elapsed


def _run(
    clock: _Clock, title: str, places: Places, name: str, job_env: dict[str, str]
) -> Generator[Event, None, RunResult]:
    yield Began(title)
    result_file = places.scratch / f"{name}.json"
    for stage in run(places.tree, result_file, job_env, ROLLOUTS):
        yield Progress(stage)
    result = read_result(result_file)
    last = result.reports()[-1]
    yield Ended(
        f"{ROLLOUTS} rollouts, last loss {last.losses[-1]:.6f}, weights {last.weights_sha256[:12]}…", clock.lap()
    )
    return result


def _config(dump: Path) -> str:
    """The starter config, for every step the demo trains."""
    return json.dumps({**json.loads(starter_config(str(dump))), "step": []}, indent=2)


def _require(condition: bool, complaint: str) -> None:
    if not condition:
        raise SystemFailed(f"demo: {complaint}; this is a bug of probe-patch, please report it")
