"""Triton's interpreter: the kernels as Python, on the host's tensors."""

from collections.abc import Iterator

import numpy as np
import pytest
import triton


def pytest_configure() -> None:
    if not triton.knobs.runtime.interpret:
        raise pytest.UsageError("these tests run in Triton's interpreter: set TRITON_INTERPRET=1")


@pytest.fixture(autouse=True)
def numpy_says_nothing() -> Iterator[None]:
    """It computes for the interpreter, and warns where a GPU overflows silently."""
    with np.errstate(all="ignore"):
        yield
