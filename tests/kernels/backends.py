"""The statistics backends that can be had here, by name."""

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import torch
from torch import Tensor

from hatch_build import NATIVE, build_library
from probe_patch.runtime.stats.backends import Backend
from probe_patch.runtime.stats.backends.chunked import Chunked
from probe_patch.runtime.stats.backends.cpu import Compiled
from probe_patch.runtime.stats.backends.library import Library
from probe_patch.runtime.stats.backends.reference import Reference
from probe_patch.runtime.stats.kinds import kind_of
from probe_patch.runtime.stats.rows import DEVICES, Block, Counts, Readings, Summary, read_rows
from tests.needs import needs

HOST = torch.device("cpu")
ROOT = Path(__file__).parents[2]


@cache
def built() -> Path:
    """The library, made of the sources as they are now."""
    folder = Path(mkdtemp(prefix="probe-patch-kernels-"))
    needs(build_library(ROOT / NATIVE, folder / "statistics.so"), "a C compiler is missing")
    return folder / "statistics.so"


@cache
def kernels(level: int) -> Library:
    """The library, held to this instruction set; each has a copy of its own, as it keeps its choice for good."""
    copy = built().with_name(f"level{level}.so")
    shutil.copyfile(built(), copy)
    library = Library(copy)
    library.limit(level)
    return library


BACKENDS: dict[str, Callable[[], Backend]] = {
    "reference": lambda: Reference(HOST, True),
    "torch in pieces": lambda: Chunked(True),
    "compiled": lambda: Compiled(kernels(4), True),
    "compiled for AVX2": lambda: Compiled(kernels(3), True),
    "compiled for all": lambda: Compiled(kernels(1), True),
}
"""With counts, for tensors on the host."""


def measured(backend: Backend, *tensors: Tensor) -> list[tuple[Summary, Counts]]:
    """What the backend finds, in one batch that does not begin at the first row."""
    block = Block(HOST, backend.accumulator)
    block.words.fill_(7)
    kinds = [kind for tensor in tensors if (kind := kind_of(tensor)) is not None]
    first = 3
    backend.measure(list(tensors), kinds, block, first)
    assert (block.words[:first] == 7).all() and (block.words[first + len(tensors) :] == 7).all()
    readings = Readings([read_rows(block.words, backend.accumulator, True, ())])
    found = []
    for number, (tensor, kind) in enumerate(zip(tensors, kinds, strict=True)):
        row = DEVICES * (first + number)
        found.append((readings.summary(row, kind, tensor.dim() == 0), readings.counts(row)))
    return found
