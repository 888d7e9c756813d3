"""What a test needs of the machine: without it, it is skipped with the reason, and in CI it fails."""

import os

import pytest


def needs(condition: bool, reason: str) -> None:
    if condition:
        return
    if os.environ.get("CI"):
        pytest.fail(f"in CI nothing may be skipped: {reason}")
    pytest.skip(reason)
