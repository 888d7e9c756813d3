"""The Triton kernels on a real GPU: right, and how quick? `make bench-gpu`, or `python -m tests.bench.gpu`.

Needs torch with CUDA, Triton, pydantic and no network, and takes less than five minutes, two of them for compiling.
Prints one report in Markdown; a section that fails says so, and the exit status is 1. With ``--dry-run`` it runs small
on the host, in Triton's interpreter (``TRITON_INTERPRET=1``), where its times mean nothing.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
import traceback
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

try:
    import triton
except ImportError:
    sys.exit("the benchmark measures Triton kernels: run it with a Python that has torch with CUDA, and Triton")
from torch import Tensor, nn

from probe_patch.runtime import PrecisionDebugger
from probe_patch.runtime.problems import Problems
from probe_patch.runtime.stats.backends import reference
from probe_patch.runtime.stats.backends.registry import VARIABLE
from probe_patch.runtime.stats.backends.triton import make
from probe_patch.runtime.stats.kinds import Kind, kind_of
from probe_patch.runtime.stats.rows import Block

HOST = torch.device("cpu")
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Scale:
    """How much of everything: elements, bytes, tensors, layers and times."""

    device: torch.device
    large: int
    sizes: tuple[int, ...]
    tensors: int
    hidden: int
    ffn: int
    length: int
    layers: int
    rounds: int
    long_elements: int

    def wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


MB = 1 << 20
FULL = Scale(
    torch.device("cuda", 0), (1 << 20) + 3, (MB, 64 * MB, 1024 * MB), 1000, 4096, 12288, 4096, 8, 7, (1 << 31) + 5
)
DRY = Scale(HOST, 2500, (4096,), 16, 16, 32, 4, 1, 1, 100)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dry-run", action="store_true", help="small, on the host, in Triton's interpreter")
    scale = DRY if parser.parse_args().dry_run else FULL
    # The automatic choice would go on with plain torch.
    os.environ[VARIABLE] = "triton"
    began = time.perf_counter()
    print(f"# Statistics by Triton on {_name(scale.device)}\n\ntorch {torch.__version__}, Triton {triton.__version__}")
    failed = 0
    for section in SECTIONS:
        print(f"\n## {section.__doc__}\n", flush=True)
        try:
            for line in section(scale):
                print(line, flush=True)
        except Exception:
            failed += 1
            print(f"FAILED\n\n```\n{traceback.format_exc()}```")
    print(f"\n{time.perf_counter() - began:.0f} s in all, {failed} of {len(SECTIONS)} sections failed")
    return 1 if failed else 0


def _name(device: torch.device) -> str:
    if device.type != "cuda":
        return "the host, in the interpreter: times mean nothing"
    found = torch.cuda.get_device_properties(device)
    return f"{found.name} (sm_{found.major}{found.minor}, {found.multi_processor_count} multiprocessors)"


def right(scale: Scale) -> Iterator[str]:
    """Right: against float64 on the host"""
    backend = make(scale.device, True)
    for name, tensors in _cases(scale):
        block = Block(scale.device, backend.accumulator)
        kinds = [kind for tensor in tensors if (kind := kind_of(tensor)) is not None]
        backend.measure(tensors, kinds, block, 0)
        rows, integers = block.floats.cpu(), block.integers.cpu()
        for number, (tensor, kind) in enumerate(zip(tensors, kinds, strict=True)):
            error = _error(tensor, kind, rows[number].tolist(), integers[number].tolist())
            if not error <= TOLERANCE:
                raise AssertionError(f"{name} {tensor.dtype} {tuple(tensor.shape)} {tensor.stride()}: off by {error}")
        yield f"- {name}: {len(tensors)} tensors"
    long = torch.ones(scale.long_elements, dtype=torch.int8, device=scale.device)
    long[-1] = 5
    block = Block(scale.device, backend.accumulator)
    backend.measure([long], [Kind.INTEGER], block, 0)
    assert block.integers[0].tolist() == [5, 1, 0, 0, 0, 0]
    assert abs(block.floats[0, 2].item() - (len(long) + 4) / len(long)) < TOLERANCE
    yield f"- {len(long)} elements in one tensor"


def _cases(scale: Scale) -> Iterator[tuple[str, list[Tensor]]]:
    generator = torch.Generator().manual_seed(0)
    small = "float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz"
    for name in f"float32 bfloat16 float16 float64 complex64 complex128 {small}".split():
        dtype = getattr(torch, name)
        values = torch.randn(scale.large, generator=generator) + 0.1
        wide = torch.complex(values, values.flip(0)) if dtype.is_complex else values
        yield name, [wide[:count].to(dtype).to(scale.device) for count in (1, 1000, scale.large)]
    for name in ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool"]:
        dtype = getattr(torch, name)
        whole = torch.randint(0, 2 if dtype is torch.bool else 120, (scale.large,), generator=generator)
        yield name, [whole[:count].to(dtype).to(scale.device) for count in (1, 1000, scale.large)]
    bits = torch.arange(256).to(torch.uint8).to(scale.device)
    eights = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")
    every = [bits.view(dtype) for dtype in (getattr(torch, name, None) for name in eights) if dtype is not None]
    yield (
        "every eight-bit float",
        [one for eight in every for one in (eight, *eight[:: 1 if scale is FULL else 64].unbind())],
    )
    inf, nan = float("inf"), float("nan")
    special = [
        [nan, 1.0],
        [inf, 1.0],
        [-inf, inf],
        [0.0, -0.0],
        [1e30, 1.0],
        [1e-30, -2e-30],
        [3e38] * 4,
    ]
    for dtype in (torch.float32, torch.bfloat16):
        lists = special if scale is DRY else [*special, [1e-40, 1e-41]]  # which the interpreter converts wrongly
        yield f"special {dtype}", [torch.tensor(values, dtype=dtype, device=scale.device) for values in lists]
    doubles = [[1e200, -1e200], [1e-200, 3e-200], [1e308] * 4, [nan, 1e200], [5e-324]]
    yield "special float64", [torch.tensor(values, dtype=torch.float64, device=scale.device) for values in doubles]
    side = 64 if scale is FULL else 8
    base = torch.randn(side, 6, side * 2 + 16, generator=generator).to(scale.device)
    for dtype in (torch.float32, torch.bfloat16, torch.int64):
        cube = base.mul(20).to(dtype)
        views = [
            cube.transpose(0, 2),
            cube[:, :, ::2],
            cube[:, ::2, 16:],
            cube[::3, 1:, 1:],
            cube[:1].expand(9, -1, -1),
        ]
        yield f"views of {dtype}", [*views, cube[0, 0, 0].expand(1 << 20), cube.flatten()[1:]]


def _error(tensor: Tensor, kind: Kind, floats: list[float], integers: list[int]) -> float:
    """How far a row is from the reference on the host, relative; 1 for what has to be exact."""
    values = tensor.detach().cpu()
    row, exact = torch.zeros(4, dtype=torch.float64), torch.zeros(6, dtype=torch.int64)
    reference.measure(values, kind, row, exact)
    exact[2:] = reference.count(values, kind)
    is_float = kind in (Kind.FLOAT, Kind.COMPLEX)
    if integers[2:] != exact[2:].tolist() or (not is_float and integers[:2] != exact[:2].tolist()):
        return 1.0
    if kind is Kind.BOOL:
        return 0.0
    wide = values.to(torch.float32) if values.element_size() == 1 and is_float else values
    size = float(wide.to(torch.complex128 if kind is Kind.COMPLEX else torch.float64).abs().mean())
    pairs = list(zip(floats, row.tolist(), strict=True))[0 if is_float else 2 :]
    return max(
        _relative(found, wanted, size if number == len(pairs) - 2 else 0)
        for number, (found, wanted) in enumerate(pairs)
    )


def _relative(found: float, wanted: float, size: float) -> float:
    if found == wanted or (found != found and wanted != wanted):
        return 0.0
    return abs(found - wanted) / max(abs(wanted), size, 1e-320)


def bandwidth(scale: Scale) -> Iterator[str]:
    """Bandwidth: bytes read by the statistics, next to bytes read and written by a copy on the device"""
    yield "| bytes | dtype | counts | statistics, us | GB/s | copy, us | GB/s | statistics / copy, in bytes moved |"
    yield "|---:|---|---|---:|---:|---:|---:|---:|"
    for size in scale.sizes:
        for dtype in (torch.float32, torch.bfloat16):
            values = torch.randn(size // dtype.itemsize, device=scale.device).to(dtype)
            target = torch.empty_like(values)
            copy = _median(scale, partial(target.copy_, values))
            for counts in (False, True):
                backend = make(scale.device, counts)
                block = Block(scale.device, backend.accumulator)
                ours = _median(scale, partial(backend.measure, [values], [Kind.FLOAT], block, 0))
                rates = (size / ours / 1e9, 2 * size / copy / 1e9)
                cells = (f"{ours * 1e6:.1f}", f"{rates[0]:.0f}", f"{copy * 1e6:.1f}", f"{rates[1]:.0f}")
                yield f"| {size} | {dtype} | {counts} | {' | '.join(cells)} | {rates[0] / rates[1]:.2f} |"


def _median(scale: Scale, call: Callable[[], object]) -> float:
    """Seconds of one call on the device, of which several are queued so that the host's time does not show."""
    call()
    times: list[float] = []
    for _ in range(scale.rounds):
        scale.wait()
        began = time.perf_counter()
        if scale.device.type == "cuda":
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
            # Keeps the device busy while the host queues what is measured.
            torch.cuda._sleep(5_000_000)  # type: ignore[no-untyped-call]
            first.record()
            for _ in range(10):
                call()
            last.record()
            scale.wait()
            times.append(first.elapsed_time(last) / 1e4)
        else:
            call()
            times.append(time.perf_counter() - began)
    return statistics.median(times)


def many_small(scale: Scale) -> Iterator[str]:
    """Many small tensors: microseconds of the host per tensor, everything read at the end"""
    tensors = [torch.randn(1000, device=scale.device) for _ in range(scale.tensors)]
    backend = make(scale.device, False)
    yield "| | queueing | with reading |"
    yield "|---|---:|---:|"
    for together in (1, 4, 16):
        block = Block(scale.device, backend.accumulator)
        kinds = [Kind.FLOAT] * together

        def ours(block: Block = block, together: int = together, kinds: Sequence[Kind] = kinds) -> Callable[[], object]:
            for start in range(0, len(tensors) - together + 1, together):
                backend.measure(tensors[start : start + together], kinds, block, start)
            return block.words.cpu

        yield _small_row(scale, f"ours, {together} per call", ours)

    def separate() -> Callable[[], object]:
        found = [number for one in tensors for number in (one.max(), one.min(), one.mean(), torch.norm(one))]
        return lambda: [number.item() for number in found]

    yield _small_row(scale, "max, min, mean, norm and four items, as msProbe does", separate)


def _small_row(scale: Scale, name: str, queue: Callable[[], Callable[[], object]]) -> str:
    queue()()
    queued, read = [], []
    for _ in range(scale.rounds):
        scale.wait()
        began = time.perf_counter()
        finish = queue()
        queued.append(time.perf_counter() - began)
        finish()
        read.append(time.perf_counter() - began)
    times = (statistics.median(one) * 1e6 / scale.tensors for one in (queued, read))
    return f"| {name} | {' | '.join(f'{one:.1f}' for one in times)} |"


class Layer(nn.Module):
    """The matrices of one layer of a dense Qwen, without its attention scores."""

    def __init__(self, hidden: int, ffn: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(hidden)
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.out = nn.Linear(hidden, hidden)
        self.gate = nn.Linear(hidden, ffn)
        self.up = nn.Linear(hidden, ffn)
        self.down = nn.Linear(ffn, hidden)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.qkv(self.norm(x)).chunk(3, -1)
        x = x + self.out(query * key.sigmoid() + value)
        result: Tensor = x + self.down(nn.functional.silu(self.gate(x)) * self.up(x))
        return result


def layers(scale: Scale) -> Iterator[str]:
    """A stack of layers of Qwen's size: a training step, milliseconds"""
    torch.manual_seed(0)
    dtype = torch.bfloat16
    stack = nn.Sequential(*(Layer(scale.hidden, scale.ffn) for _ in range(scale.layers))).to(scale.device, dtype)
    batch = torch.randn(1, scale.length, scale.hidden, device=scale.device, dtype=dtype)
    yield f"{scale.layers} layers, hidden {scale.hidden}, ffn {scale.ffn}, length {scale.length}, {dtype}\n"
    yield "| | step | added | entries |"
    yield "|---|---:|---:|---:|"
    plain = _step_times(scale, stack, batch, None)
    yield f"| without | {plain * 1e3:.1f} | | |"
    for level in ("L0", "mix"):
        with tempfile.TemporaryDirectory(prefix="probe-patch-gpu-") as name:
            debugger = PrecisionDebugger(_config(Path(name), level))
            taken = _step_times(scale, stack, batch, debugger)
            metas = [json.loads(path.read_bytes()) for path in Path(name).glob("out/step*/*/meta.json")]
            entries = [len(json.loads(path.read_bytes())["data"]) for path in Path(name).glob("out/step*/*/dump.json")]
        assert entries and min(entries) > scale.layers
        problems = [meta["problems"] for meta in metas]
        assert metas and not any(problems), problems
        yield f"| {level} | {taken * 1e3:.1f} | {(taken - plain) * 1e3:.1f} | {entries[-1]} |"


def _step_times(scale: Scale, stack: nn.Module, batch: Tensor, debugger: PrecisionDebugger | None) -> float:
    times = []
    for _ in range(2 * scale.rounds):
        scale.wait()
        began = time.perf_counter()
        if debugger is not None:
            debugger.start(stack)
        stack(batch).float().square().mean().backward()
        if debugger is not None:
            debugger.stop()
            debugger.step()
        stack.zero_grad()
        scale.wait()
        times.append(time.perf_counter() - began)
    return statistics.median(times[scale.rounds :])


def _config(folder: Path, level: str) -> Path:
    config = folder / "config.json"
    section = {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics"}
    document = {"task": "statistics", "dump_path": str(folder / "out"), "rank": [], "step": [], "level": level}
    config.write_text(json.dumps({**document, "statistics": section}))
    return config


def graphs(scale: Scale) -> Iterator[str]:
    """CUDA graphs: captured once, replayed with other values"""
    backend = make(scale.device, True)
    block = Block(scale.device, backend.accumulator)
    tensors = [torch.randn(count, device=scale.device) for count in (100, 200, scale.large)]
    tensors.append(torch.randn(300, 400, device=scale.device)[:, 16:144] if scale is FULL else tensors[0][::2])
    kinds = [Kind.FLOAT] * len(tensors)
    backend.measure(tensors, kinds, block, 0)
    if scale.device.type == "cuda":
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            backend.measure(tensors, kinds, block, 0)
        replay = graph.replay
    else:
        replay = lambda: backend.measure(tensors, kinds, block, 0)  # noqa: E731
    for factor in (3.0, -2.0):
        for tensor in tensors:
            tensor.mul_(factor)
        block.words.zero_()
        replay()
        scale.wait()
        found = block.floats[: len(tensors)].tolist(), block.integers[: len(tensors)].tolist()
        for tensor, floats, integers in zip(tensors, *found, strict=True):
            assert _error(tensor, Kind.FLOAT, floats, integers) <= TOLERANCE
    yield f"{len(tensors)} tensors, replayed twice: right"


def checksums(scale: Scale) -> Iterator[str]:
    """CRC-32 on the device, against zlib"""
    try:
        from probe_patch.runtime.stats.checksums.table import ChecksumTable  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        yield "not there in this version"
        return
    values = torch.randn(scale.sizes[-2 if len(scale.sizes) > 1 else 0] // 4, device=scale.device)
    pending = []

    def call() -> None:
        pending.append(table.crc32(values))

    table = ChecksumTable(Problems(set()))
    taken = _median(scale, call)
    table.read()
    wanted = zlib.crc32(bytes(values.cpu().view(torch.uint8).untyped_storage()))
    assert all(int(getattr(one, "value", lambda one=one: one)()) == wanted for one in pending)
    size = values.numel() * 4
    yield f"{size} bytes: {taken * 1e6:.0f} us, {size / taken / 1e9:.1f} GB/s, the same as zlib's"


SECTIONS = (right, bandwidth, many_small, layers, graphs, checksums)

if __name__ == "__main__":
    sys.exit(main())
