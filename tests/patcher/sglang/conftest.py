"""Tests here may ask for ``patched_release`` or ``native_release``."""

from tests.patcher.sglang.releases import parametrise as pytest_generate_tests

__all__ = ["pytest_generate_tests"]
