"""What recording module forwards costs, next to msProbe's level L0 restricted to forwards: `make bench`.

Plain, ours and msProbe's steps take turns in one process per model, one torch thread, and each reports the CPU time of
a whole training step: forward, backward, SGD, and for the dumps everything from start to files on disk. Medians; the
ratio to compare is added CPU time, ours over msProbe's. Both write four statistics per tensor of inputs, outputs and
parameters, and their numbers of entries are shown, so that nobody wins by recording less.
"""

import contextlib
import io
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import torch
from torch import nn

from probe_patch.runtime import PrecisionDebugger

ROUNDS = 7


@dataclass(frozen=True)
class Shape:
    """A stack of blocks, and the batch it is fed: [batch, length, hidden], float32."""

    layers: int
    hidden: int
    length: int
    batch: int = 2

    def __str__(self) -> str:
        return f"{self.layers} layers, hidden {self.hidden}, length {self.length}"


SHAPES = (Shape(8, 32, 8), Shape(60, 32, 8), Shape(8, 512, 256))


class Block(nn.Module):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(hidden)
        self.up = nn.Linear(hidden, 4 * hidden)
        self.act = nn.GELU()
        self.down = nn.Linear(4 * hidden, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = x + self.down(self.act(self.up(self.norm(x))))
        return result


@dataclass(frozen=True)
class Peer:
    """One way to record a step."""

    name: str
    start: Callable[[nn.Module], None]
    end: Callable[[], None]


def measure(shape: Shape, folder: Path) -> dict[str, float]:
    """Median CPU milliseconds of a step, by peer."""
    torch.manual_seed(0)
    model = nn.Sequential(*(Block(shape.hidden) for _ in range(shape.layers)))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    batch = torch.randn(shape.batch, shape.length, shape.hidden)
    peers = (Peer("plain", lambda _: None, lambda: None), _ours(folder), _msprobe(folder))
    times: dict[str, list[float]] = {peer.name: [] for peer in peers}
    for number in range(ROUNDS + 1):
        for peer in peers:
            began = time.process_time()
            peer.start(model)
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()
            peer.end()
            if number:  # the first round warms up
                times[peer.name].append(time.process_time() - began)
    return {name: 1e3 * statistics.median(values) for name, values in times.items()}


def entries(folder: Path, peer: str) -> int:
    """How many entries the peer's last dump has."""
    dumps = sorted((folder / peer).glob("step*/*/dump.json"), key=lambda path: path.stat().st_mtime)
    return len(json.loads(dumps[-1].read_bytes())["data"])


def _config(folder: Path, name: str) -> Path:
    config = folder / f"{name}.json"
    section = {"scope": [], "list": [], "tensor_list": [], "data_mode": ["forward"], "summary_mode": "statistics"}
    document = {"task": "statistics", "dump_path": str(folder / name), "rank": [], "step": [], "level": "L0"}
    config.write_text(json.dumps({**document, "statistics": section}))
    return config


def _ours(folder: Path) -> Peer:
    debugger = PrecisionDebugger(_config(folder, "ours"))

    def end() -> None:
        debugger.stop()
        debugger.step()

    return Peer("probe-patch", debugger.start, end)


def _msprobe(folder: Path) -> Peer:
    from msprobe.pytorch import PrecisionDebugger as Theirs

    theirs = Theirs(config_path=str(_config(folder, "msprobe")))

    def start(model: nn.Module) -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            theirs.start(model=model)

    def end() -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            theirs.stop()
            theirs.step()

    return Peer("msProbe", start, end)


def main() -> None:
    versions = f"torch {torch.__version__}, msProbe {version('mindstudio-probe')}, Python {platform.python_version()}"
    print(f"{_machine()}; {versions}; median of {ROUNDS} steps, CPU ms")
    print()
    print("| model | plain | probe-patch | msProbe | added by probe-patch / by msProbe | entries |")
    print("|---|---:|---:|---:|---:|---:|")
    for number in range(len(SHAPES)):
        # msProbe's debugger is one per process and keeps its first settings.
        row = subprocess.run([sys.executable, __file__, str(number)], capture_output=True, text=True, check=True)
        print(row.stdout.splitlines()[-1], flush=True)


def print_row(shape: Shape) -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="probe-patch-bench-") as name:
        cpu = measure(shape, Path(name))
        counts = [entries(Path(name), peer) for peer in ("ours", "msprobe")]
    ours, theirs = cpu["probe-patch"] - cpu["plain"], cpu["msProbe"] - cpu["plain"]
    cells = " | ".join(f"{value:.1f}" for value in cpu.values())
    print(f"| {shape} | {cells} | {ours:.1f} / {theirs:.1f} = 1/{theirs / ours:.1f} | {counts[0]} / {counts[1]} |")


def _machine() -> str:
    with contextlib.suppress(OSError), Path("/proc/cpuinfo").open() as lines:
        for line in lines:
            if line.startswith("model name"):
                return f"{line.partition(':')[2].strip()}, one thread"
    return f"{platform.machine()}, one thread"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print_row(SHAPES[int(sys.argv[1])])
    else:
        main()
