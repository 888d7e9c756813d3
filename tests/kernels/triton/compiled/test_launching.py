"""What is launched, by Triton's own way from Python to the driver, with a driver that only writes it down."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import triton
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from triton.backends.compiler import GPUTarget

from probe_patch.runtime.stats.backends.triton.backend import TritonBackend, Tuning
from probe_patch.runtime.stats.backends.triton.kernels.merging import merge_partials
from probe_patch.runtime.stats.backends.triton.kernels.one import measure_one
from probe_patch.runtime.stats.backends.triton.kernels.several import measure_several
from probe_patch.runtime.stats.backends.triton.variants import Arithmetic
from probe_patch.runtime.stats.rows import Block

KERNELS = (measure_one, measure_several, merge_partials)
HOST = torch.device("cpu")
TUNING = Tuning(programs=3, tile=256, group=1, small=1000)


class Launch(SimpleNamespace):
    kernel: str
    programs: int
    stream: int
    arguments: dict[str, Any]
    signature: dict[str, str]


class Driver:
    """A GPU of sm_90 that does nothing."""

    def __init__(self) -> None:
        self.launches: list[Launch] = []
        self.utils = SimpleNamespace(
            load_binary=lambda *_: (object(), object(), 32, 0, 1024),
            unload_module=lambda _: None,
            get_device_properties=lambda _: {"max_shared_mem": 1 << 17},
        )
        self.launcher_cls = self.launcher

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, _: int) -> int:
        return 7

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)

    def launcher(self, source: Any, metadata: Any) -> Any:
        def launch(x: int, _y: int, _z: int, stream: int, *rest: Any) -> None:
            names = source.fn.arg_names
            arguments = dict(zip(names, rest[-len(names) :], strict=True))
            launch = Launch(
                kernel=metadata.name, programs=x, stream=stream, arguments=arguments, signature=source.signature
            )
            self.launches.append(launch)

        return launch


class Queue:
    """Of a device whose streams are numbers."""

    def __init__(self) -> None:
        self.stream = 1
        self.captures = False

    def selected(self) -> AbstractContextManager[object]:
        return nullcontext()

    def current(self) -> int:
        return self.stream

    def is_captured(self) -> bool:
        return self.captures


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    made = Driver()
    monkeypatch.setattr(triton.runtime.driver, "_active", made)
    yield made
    for kernel in KERNELS:
        kernel.device_caches.clear()


@pytest.fixture
def block() -> Block:
    return Block(HOST, torch.float64)


def backend(queue: Queue | None = None) -> TritonBackend:
    return TritonBackend(HOST, False, Arithmetic.FLOAT64, True, queue or Queue(), TUNING)


def aligned(count: int) -> Tensor:
    return torch.zeros(count + 16)[:count]


def test_the_quick_way_passes_what_triton_would(driver: Driver, block: Block, monkeypatch: pytest.MonkeyPatch) -> None:
    found = backend()
    tensors = [aligned(3), aligned(5), aligned(2000)]
    found.measure(tensors, [], block, 4)
    for kernel in KERNELS:
        monkeypatch.setattr(kernel, "run", lambda *_, **__: pytest.fail("Triton looked at every argument again"))
    found.measure(tensors, [], block, 4)
    first, second = driver.launches[:3], driver.launches[3:]
    assert [(launch.kernel, launch.programs, launch.stream) for launch in first] == [
        ("measure_one", 3, 7),
        ("merge_partials", 1, 7),
        ("measure_several", 2, 7),
    ]
    for before, after in zip(first, second, strict=True):
        assert (before.kernel, before.programs, before.stream) == (after.kernel, after.programs, after.stream)
        assert before.arguments.keys() == after.arguments.keys()
        for name, value in before.arguments.items():
            assert _number(value) == _number(after.arguments[name]), name


def _number(value: Any) -> Any:
    return value.data_ptr() if hasattr(value, "data_ptr") else value


def test_places_of_small_tensors(driver: Driver, block: Block) -> None:
    tensors = [aligned(3), aligned(5)]
    backend().measure(tensors, [], block, 9)
    (launch,) = driver.launches
    given = launch.arguments
    assert (given["address0"], given["address1"], given["address2"]) == (*(one.data_ptr() for one in tensors), 0)
    assert (given["place0"], given["place1"], given["place2"]) == (9 << 32 | 3, 10 << 32 | 5, 0)
    assert given["floats"].data_ptr() == block.address
    assert given["integers"].data_ptr() == block.address + 4 * 8


def test_numbers_are_compiled_for_as_64_bits_whatever_they_are(driver: Driver, block: Block) -> None:
    """Triton would compile anew for 1, for multiples of 16 and for what needs more than 32 bits."""
    found = backend()
    for count in (1, 16, 100, 1008, 1500):
        found.measure([aligned(count), aligned(2 * count)[::2]], [], block, 0)
    assert {launch.kernel for launch in driver.launches} == {"measure_one", "measure_several", "merge_partials"}
    for launch in driver.launches:
        kinds = {launch.signature[name] for name in launch.arguments}
        assert kinds <= {"constexpr", "i64", "*i64", "*fp64", "*fp32"}
    # Dense by several; strided alone, even or not, and by several; and the merging.
    assert sum(len(kernel.device_caches[0][0]) for kernel in KERNELS) <= 6


def test_misaligned_memory_is_not_read_as_if_it_were_aligned(driver: Driver, block: Block) -> None:
    found = backend()
    for tensor in (aligned(2000), aligned(2001)[1:], aligned(100), aligned(101)[1:]):
        found.measure([tensor], [], block, 0)
    ones = [launch for launch in driver.launches if launch.kernel == "measure_one"]
    assert [launch.arguments["pointer"].data_ptr() % 16 for launch in ones] == [0, 4]
    assert len(measure_one.device_caches[0][0]) == 2
    several = [launch for launch in driver.launches if launch.kernel == "measure_several"]
    assert [launch.arguments["EVEN"] for launch in several] == [True, False]


class Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Keeps the names of operations."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def test_nothing_is_allocated_once_a_stream_is_known(driver: Driver, block: Block) -> None:
    found = backend()
    tensors = [aligned(3), aligned(2000), aligned(2000).reshape(40, 50)[:, ::2]]
    found.measure(tensors, [], block, 0)
    with Operations() as operations:
        found.measure(tensors, [], block, 0)
    # Triton's way to see a tensor in another dtype makes a view.
    assert set(operations.names) <= {"aten.detach.default"}


def test_streams_and_captured_graphs_share_no_memory(driver: Driver, block: Block) -> None:
    queue = Queue()
    found = backend(queue)
    used = []
    # Kept, as a graph keeps its memory.
    kept = []
    for stream, captures in ((1, False), (2, False), (1, True), (1, True), (1, False)):
        queue.stream, queue.captures = stream, captures
        found.measure([aligned(2000)], [], block, 0)
        measured, merged = driver.launches[-2:]
        kept.append(measured.arguments["floats"])
        assert measured.arguments["floats"] is merged.arguments["partial_floats"]
        used.append(measured.arguments["floats"].data_ptr())
    assert used[0] == used[4]
    assert len(set(used)) == 4
