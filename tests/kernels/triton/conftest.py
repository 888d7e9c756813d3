"""These tests need Triton, which has an environment of its own: `make test-kernels` names their folders.

Anywhere else they are left out; named, they fail where there is no Triton.
"""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    named = [config.invocation_params.dir / argument.split("::")[0] for argument in config.args]
    return None if any(HERE in (path, *path.parents) for path in named) else True
