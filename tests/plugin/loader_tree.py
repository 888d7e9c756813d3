"""The plugin loader of real SGLang releases, over a small SGLang that runs without its dependencies.

Real: ``sglang.srt.plugins`` and ``sglang.srt.environ`` of the release's wheel, and the metadata of this installation of
probe-patch. Stand-ins, from ``fixtures/sglang``: ``ModelRunner`` and what is around it.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict

from tests.fixtures.sglang.runs import Plan, Served
from tests.fixtures.sglang.trees import lay_out_sglang
from tests.harness.sglang_releases import release
from tests.harness.wheels import read_from_wheel

VERSIONS: Final = ("0.5.11", "0.5.12.post1", "0.5.15", "0.5.20", "0.5.23")
MEMBERS: Final = tuple(
    f"sglang/srt/{member}.py"
    for member in ("plugins/__init__", "plugins/hook_registry", "environ", "debug_utils/cuda_coredump")
)
START: Final = Path(__file__).with_name("start.py")
OUR_ENVIRONMENT: Final = ("DUMP_ON", "SGLANG_", "PROBE_PATCH_", "MSPROBE_")


class Loaded(BaseModel):
    """What calling ``load_plugins`` did to the process: top-level packages and modules of ours that came in."""

    model_config = ConfigDict(frozen=True)

    packages: tuple[str, ...]
    ours: tuple[str, ...]
    finders_added: int
    model_runner_imported: bool


@dataclass(frozen=True)
class Run:
    """How the process ended; ``served`` is None if it failed before its result."""

    returncode: int
    stderr: str
    loaded: Loaded
    served: Served | None

    def done(self) -> Served:
        assert self.returncode == 0, self.stderr
        assert self.served is not None
        return self.served


def lay_out(version: str, era: str, destination: Path) -> Path:
    """A tree of ``fixtures/sglang`` with the release's plugin loader in it."""
    return add_plugin_loader(version, lay_out_sglang(era, destination))


def add_plugin_loader(version: str, tree: Path) -> Path:
    """Unpack the release's plugin loader into a tree, and return the tree."""
    for member in MEMBERS:
        path = tree / member
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(read_from_wheel(release(version).wheel, member))
    return tree


def add_plugin(tree: Path, name: str, source: str) -> None:
    """Install another distribution's plugin into the tree: a module with a function ``register``, and its metadata."""
    (tree / f"{name}.py").write_text(source)
    metadata = tree / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[sglang.srt.plugins]\n{name} = {name}:register\n")


def start(tree: Path, plan: Plan, environ: Mapping[str, str]) -> Run:
    """What a scheduler process does: load the plugins, then import ModelRunner and serve."""
    plan_file, loaded_file, result_file = (tree / f"{name}.json" for name in ("plan", "loaded", "result"))
    plan_file.write_text(json.dumps(plan.document()))
    result_file.unlink(missing_ok=True)
    around = {name: value for name, value in os.environ.items() if not name.startswith(OUR_ENVIRONMENT)}
    done = subprocess.run(
        [sys.executable, str(START), str(tree), str(plan_file), str(loaded_file), str(result_file)],
        env={**around, **environ},
        cwd=tree,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert loaded_file.is_file(), done.stderr
    served = Served.model_validate_json(result_file.read_bytes()) if result_file.is_file() else None
    return Run(done.returncode, done.stderr, Loaded.model_validate_json(loaded_file.read_bytes()), served)
