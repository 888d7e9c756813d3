"""What a benchmark ran on, for the line above its table."""

import contextlib
import platform
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

import torch


def machine(distributions: Iterable[str] = ()) -> str:
    """The processor, Python and torch, and the versions of these distributions."""
    versions = [f"{name} {version(name)}" for name in distributions]
    return ", ".join((_processor(), f"torch {torch.__version__}", f"Python {platform.python_version()}", *versions))


def _processor() -> str:
    with contextlib.suppress(OSError), Path("/proc/cpuinfo").open() as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()
