"""Builds the C library of the statistics, where there is a C compiler; without one the package is pure Python."""

import ctypes
import os
import platform
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NATIVE = Path("probe_patch/runtime/stats/backends/native")
LIBRARY = NATIVE / "statistics.so"

_FLAGS = ("-O3", "-fPIC", "-fno-math-errno", "-fno-trapping-math", "-fvisibility=hidden", "-w")
# Instruction sets beyond the least a machine may have, the one that the library picks when it is loaded; what an older
# compiler does not know is left out.
_LEVELS = {"v3": ("-march=x86-64-v3",), "v4": ("-march=x86-64-v4", "-mprefer-vector-width=512")}
_SECONDS = 300


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """A wheel has the library inside and its platform in its name; an editable install has it beside its source."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        root = Path(self.root)
        if version == "editable":
            build_library(root / NATIVE, root / LIBRARY)
            return
        self._folder = tempfile.TemporaryDirectory()
        built = Path(self._folder.name) / LIBRARY.name
        if build_library(root / NATIVE, built):
            tag = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{tag}"
            build_data["force_include"][str(built)] = str(LIBRARY)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if hasattr(self, "_folder"):
            self._folder.cleanup()


def build_library(sources: Path, library: Path) -> bool:
    """Compile the sources into a shared library that can be loaded; False where that cannot be done. Never raises."""
    try:
        compiler = _compiler()
        if compiler is None:
            return False
        with tempfile.TemporaryDirectory() as name:
            built = Path(name) / library.name
            _compile(compiler, sources, built)
            if ctypes.CDLL(str(built)).probe_patch_abi() <= 0:
                return False
            # In one step, as a process may have the one before loaded.
            beside = library.with_name(f".{library.name}.{os.getpid()}")
            shutil.copyfile(built, beside)
            beside.replace(library)
    except (OSError, AttributeError, ValueError, subprocess.SubprocessError):
        return False
    return True


def _compiler() -> list[str] | None:
    named = os.environ.get("CC")
    candidates = [shlex.split(named)] if named else [["cc"], ["gcc"], ["clang"]]
    return next((words for words in candidates if words and shutil.which(words[0])), None)


def _compile(compiler: list[str], sources: Path, built: Path) -> None:
    """Raises SubprocessError or OSError where the least of it fails."""
    kernels = sources / "kernels.c"
    objects = [_compiled(compiler, kernels, built, "baseline", ())]
    defined = []
    if platform.machine().lower() in ("x86_64", "amd64"):
        try:
            for level, flags in _LEVELS.items():
                objects.append(_compiled(compiler, kernels, built, level, flags))
                defined.append(f"-DHAS_{level.upper()}")
        except subprocess.SubprocessError:
            pass
    _run(compiler, *_FLAGS, *defined, "-shared", sources / "library.c", *objects, "-lm", "-o", built)


def _compiled(compiler: list[str], source: Path, built: Path, level: str, flags: tuple[str, ...]) -> Path:
    made = built.with_name(f"{level}.o")
    _run(compiler, *_FLAGS, *flags, f"-DRUN=probe_patch_run_{level}", "-c", source, "-o", made)
    return made


def _run(compiler: list[str], *arguments: object) -> None:
    subprocess.run([*compiler, *map(str, arguments)], check=True, capture_output=True, timeout=_SECONDS)
