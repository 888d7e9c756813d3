"""Kernels compiled for real architectures, without a GPU."""

import pytest
import triton


def pytest_configure() -> None:
    if triton.knobs.runtime.interpret:
        raise pytest.UsageError("these tests compile kernels: unset TRITON_INTERPRET")
