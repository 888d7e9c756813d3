"""What a dump adds to a whole training step, next to msProbe's, in one run.

Each peer has a process of its own, since msProbe wraps torch's functions for as long as its process lives, and they
take turns, step by step, with one torch thread each. The figure to compare is added CPU time: a dumped step less a
plain one of the same process, from the start to the files on disk; medians.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tests.bench.peers import MODES, PEERS, Mode, PeerName
from tests.bench.stack import SHAPES, Shape

ROUNDS = 7
_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Added:
    """Medians of one peer.

    Attributes:
        plain: CPU milliseconds of a step without a dump.
        cpu: CPU milliseconds that a dump adds.
        wall: wall-clock milliseconds that a dump adds.
        idle: what start, stop and step take in a step that is not selected, as a part of the plain step. In between,
            nothing of ours is on the model.
        entries: of one dump.
        tensors: of one dump.
        kilobytes: of one dump's files.
    """

    plain: float
    cpu: float
    wall: float
    idle: float
    entries: int
    tensors: int
    kilobytes: float


@dataclass(frozen=True)
class Step:
    """One shape in one mode."""

    shape: Shape
    mode: Mode
    peers: dict[PeerName, Added]

    @property
    def ratio(self) -> float:
        """What msProbe adds in CPU time, over what we add."""
        return self.peers["msProbe"].cpu / self.peers["probe-patch"].cpu


def steps() -> Iterator[Step]:
    """Measure everything, one after the other."""
    for shape_number, shape in enumerate(SHAPES):
        for mode_number, mode in enumerate(MODES):
            yield Step(shape, mode, _measured(mode_number, shape_number))


def _measured(mode: int, shape: int) -> dict[PeerName, Added]:
    with tempfile.TemporaryDirectory(prefix="probe-patch-bench-") as folder, ExitStack() as stack:
        workers = {peer: stack.enter_context(_worker(peer, mode, shape, Path(folder))) for peer in PEERS}
        rounds: dict[PeerName, list[Any]] = {peer: [] for peer in PEERS}
        for number in range(ROUNDS + 1):
            for peer, (ask, answers) in workers.items():
                ask.write("\n")
                ask.flush()
                answer = json.loads(_answer(answers))
                if number:  # the first round warms up
                    rounds[peer].append(answer)
    return {peer: _medians(answers) for peer, answers in rounds.items()}


def _answer(lines: IO[str]) -> str:
    for line in lines:
        if line.startswith("{"):
            return line
    raise RuntimeError("a peer's process has ended; run tests.bench.steps_worker by itself to see why")


@contextmanager
def _worker(peer: PeerName, mode: int, shape: int, folder: Path) -> Iterator[tuple[IO[str], IO[str]]]:
    command = [sys.executable, "-m", "tests.bench.steps_worker", peer, str(mode), str(shape), str(folder / peer)]
    with subprocess.Popen(
        command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdin, process.stdout
        process.stdin.close()


def _medians(rounds: list[Any]) -> Added:
    def median(kind: str, clock: str) -> float:
        return 1e3 * statistics.median([float(one[kind][clock]) for one in rounds])

    plain = median("plain", "cpu")
    last = rounds[-1]
    return Added(
        plain=plain,
        cpu=median("dump", "cpu") - plain,
        wall=median("dump", "wall") - median("plain", "wall"),
        idle=median("idle", "around") / plain,
        entries=last["entries"],
        tensors=last["tensors"],
        kilobytes=last["bytes"] / 1e3,
    )
