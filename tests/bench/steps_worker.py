"""One peer's process: a line on its standard input is a round, answered with a line of measurements.

A round trains one step plain, one with the dump on in a step that is not selected, and one that is dumped, which is
measured until the files are on disk. Python collects its garbage when it likes, as it does in a run.
"""

import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast, get_args

import torch

from tests.bench.peers import MODES, PeerName, Recording, last_dump, nothing, recording
from tests.bench.stack import SHAPES, Training

NEVER = 999_999
"""A step that no benchmark comes to."""


@dataclass(frozen=True)
class Spent:
    """Seconds of one step.

    Attributes:
        around: CPU time before and behind the training itself.
    """

    cpu: float
    wall: float
    around: float


@dataclass(frozen=True)
class Round:
    plain: Spent
    idle: Spent
    dump: Spent
    entries: int
    tensors: int
    bytes: int


def spent(training: Training, how: Recording) -> Spent:
    cpu, wall = time.process_time(), time.perf_counter()
    how.start(training.model)
    began = time.process_time()
    training.step()
    ended = time.process_time()
    how.end()
    done = time.process_time()
    return Spent(done - cpu, time.perf_counter() - wall, began - cpu + done - ended)


def main(peer: PeerName, mode: int, shape: int, folder: Path) -> None:
    torch.set_num_threads(1)
    training = Training(SHAPES[shape])
    dump = recording(peer, MODES[mode], folder / "dump")
    # msProbe has one debugger per process.
    idle = recording(peer, MODES[mode], folder / "idle", steps=(NEVER,)) if peer == "probe-patch" else nothing()
    for _ in sys.stdin:
        plain, unselected, dumped = (spent(training, how) for how in (nothing(), idle, dump))
        written = last_dump(folder / "dump")
        entries = json.loads((written / "dump.json").read_bytes())["data"]
        tensors = json.dumps(entries).count('"requires_grad"')
        size = sum(path.stat().st_size for path in written.iterdir() if path.is_file())
        print(json.dumps(asdict(Round(plain, unselected, dumped, len(entries), tensors, size))), flush=True)


if __name__ == "__main__":
    assert sys.argv[1] in get_args(PeerName)
    main(cast("PeerName", sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
