"""Triton's interpreter: the kernels as Python, on the host's tensors."""

import pytest
import triton


def pytest_configure() -> None:
    if not triton.knobs.runtime.interpret:
        raise pytest.UsageError("these tests run in Triton's interpreter: set TRITON_INTERPRET=1")
