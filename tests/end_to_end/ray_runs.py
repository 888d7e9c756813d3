"""Patched example trees under Ray, as slime runs: every variable of ours comes from where the test puts it."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.end_to_end.run_jobs import GATE
from tests.fixtures.results import Result


def run_under_ray(tree: Path, scratch: Path, flags: list[str], exported: Mapping[str, str] | None = None) -> Result:
    """``python train.py`` with a private Ray, whose files go to ``scratch`` (a short path: Ray makes sockets there).

    Args:
        exported: what is in the environment of the driver, and so of everything Ray starts; no other variable of
            ours is.
    """
    result = tree / "result.json"
    env = {name: value for name, value in os.environ.items() if name not in GATE}
    env |= {"TMPDIR": str(scratch), **(exported or {})}
    command = [sys.executable, "train.py", "--result", str(result), *flags]
    done = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return Result.model_validate_json(result.read_bytes())


def env_vars(**variables: str) -> str:
    """A runtime env for ``--runtime-env``."""
    return json.dumps({"env_vars": variables})
