"""These tests need Triton, as those of ``tests/kernels/triton`` do: they run where their folders are named."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    named = [config.invocation_params.dir / argument.partition("::")[0] for argument in config.args]
    return None if any(path.is_relative_to(HERE) for path in named) else True
