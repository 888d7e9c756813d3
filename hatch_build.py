"""Builds what is compiled: the C library of the statistics, and by Cython each module that has a ``.pxd`` beside it
or is a ``.pyx``.

What cannot be built is left out, and the package is pure Python there. Run as a script, it brings the compiled modules
of this tree up to date, and says why that cannot be done where it cannot.
"""

import ctypes
import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

if TYPE_CHECKING:
    from probe_patch.runtime.build_stamp import Stamp

ROOT = Path(__file__).parent
NATIVE = Path("probe_patch/runtime/stats/backends/native")
LIBRARY = NATIVE / "statistics.so"

_FLAGS = ("-O3", "-fPIC", "-fno-math-errno", "-fno-trapping-math", "-fvisibility=hidden", "-w")
# Instruction sets beyond the least a machine may have, the one that the library picks when it is loaded; what an older
# compiler does not know is left out.
_LEVELS = {"v3": ("-march=x86-64-v3",), "v4": ("-march=x86-64-v4", "-mprefer-vector-width=512")}
# What Cython writes relies on signed overflow and casts as Python's own sources do. It mostly calls Python: of what a
# dump adds to a step of small tensors, -O2 takes a few hundredths off -O1, and so does calling without a table between.
_MODULE_FLAGS = (
    "-O2",
    "-fno-plt",
    "-DNDEBUG",
    "-fPIC",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-fvisibility=hidden",
    "-w",
    "-shared",
)
# Annotations are for mypy: an int of theirs may be longer than C's.
_DIRECTIVES = {"annotation_typing": False, "auto_pickle": False, "binding": True}
# What these make is made by the ten thousand and is in no cycle that lasts: the garbage collector need not look at it.
_WITHOUT_CYCLES = {
    f"probe_patch/runtime/capture/{name}"
    for name in ("arrivals", "backward", "forwards", "moments", "shares", "unhooked", "walks")
}
_SECONDS = 300


def _build_stamp() -> ModuleType:
    """What the package knows of its compiled modules, without importing the package."""
    spec = importlib.util.spec_from_file_location("build_stamp", ROOT / "probe_patch" / "runtime" / "build_stamp.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


build_stamp = _build_stamp()


class NotBuilt(Exception):
    """The modules cannot be compiled here; the message says why."""


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """A wheel has inside what is compiled, and in its name for whom; an editable install has it beside its source."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        root = Path(self.root)
        if version == "editable":
            build_library(root / NATIVE, root / LIBRARY)
            try:
                build_in_place(root)
            except NotBuilt as error:
                self._tell(error)
            return
        self._folder = tempfile.TemporaryDirectory()
        elsewhere = Path(self._folder.name)
        if build_library(root / NATIVE, elsewhere / LIBRARY.name):
            _hold(build_data, "py3-none", {str(LIBRARY): elsewhere / LIBRARY.name})
        try:
            files = modules_for_a_wheel(root, elsewhere)
        except NotBuilt as error:
            self._tell(error)
        else:
            python = f"cp{sys.version_info.major}{sys.version_info.minor}"
            _hold(build_data, f"{python}-{python}{sys.abiflags}", files)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if hasattr(self, "_folder"):
            self._folder.cleanup()

    def _tell(self, error: NotBuilt) -> None:
        self.app.display_warning(f"the capture of probe-patch is not compiled: {error}")


def _hold(build_data: dict[str, Any], python: str, files: Mapping[str, Path]) -> None:
    build_data["pure_python"] = False
    build_data["tag"] = f"{python}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
    build_data["force_include"] |= {str(file): place for place, file in files.items()}


def build_in_place(root: Path) -> None:
    """Bring the compiled modules of this tree up to date. Where that cannot be done, none is left there.

    Raises:
        NotBuilt: it cannot be done.
    """
    if _is_up_to_date(root):
        return
    try:
        (root / build_stamp.STAMP).unlink(missing_ok=True)
        for stale in (root / "probe_patch").rglob(f"*{build_stamp.SUFFIX}"):
            stale.unlink()
        with tempfile.TemporaryDirectory() as name:
            for place, made in build_modules(root, Path(name)).items():
                _put(made, root / place)
    except OSError as error:
        raise NotBuilt(str(error)) from error


def modules_for_a_wheel(root: Path, elsewhere: Path) -> dict[str, Path]:
    """Those of the tree where they are up to date; as ``build_modules``."""
    _tools()
    return _files(root, _wanted(root)) if _is_up_to_date(root) else build_modules(root, elsewhere)


def build_modules(root: Path, elsewhere: Path) -> dict[str, Path]:
    """Compile the modules of this tree into another folder: all or none.

    Returns:
        what was made, by its place in the tree. The stamp comes last: it says that all the rest is there.

    Raises:
        NotBuilt: that cannot be done.
    """
    compiler = _tools()
    wanted = _wanted(root)
    pool = ThreadPoolExecutor(os.cpu_count())
    try:
        # Cython takes a tenth of what the C compiler does.
        running = [
            pool.submit(_run, compiler, *_MODULE_FLAGS, "-I", sysconfig.get_path("include"), *translated)
            for translated in (_translated(root, module, elsewhere) for module in wanted.modules)
        ]
        for one in running:
            one.result()
    except subprocess.CalledProcessError as error:
        raise NotBuilt(f"{compiler[0]} fails: {error.stderr.decode(errors='replace')}") from error
    except (OSError, subprocess.SubprocessError) as error:
        raise NotBuilt(str(error)) from error
    finally:
        pool.shutdown(cancel_futures=True)
    (elsewhere / build_stamp.STAMP).write_text(wanted.text(), encoding="utf-8")
    return _files(elsewhere, wanted)


def _wanted(root: Path) -> "Stamp":
    """Raises NotBuilt where a declaration has no source beside it."""
    modules = build_stamp.modules_with_declarations(root)
    builder = sha256(Path(__file__).read_bytes()).hexdigest()
    try:
        sources = build_stamp.hash_of_sources(root, modules)
    except OSError as error:
        raise NotBuilt(str(error)) from error
    return cast("Stamp", build_stamp.Stamp(modules, sources, builder))


def _is_up_to_date(root: Path) -> bool:
    wanted = _wanted(root)
    return bool(build_stamp.read_stamp(root) == wanted and build_stamp.is_whole(root, wanted))


def _files(folder: Path, stamp: "Stamp") -> dict[str, Path]:
    places = [*(f"{module}{build_stamp.SUFFIX}" for module in stamp.modules), build_stamp.STAMP]
    return {place: folder / place for place in places}


def _tools() -> list[str]:
    """The C compiler, where all else is there too.

    Raises:
        NotBuilt: something is missing.
    """
    compiler = _compiler()
    if compiler is None:
        raise NotBuilt("there is no C compiler")
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise NotBuilt("this Python is another one than CPython, or has no lock")
    if not Path(sysconfig.get_path("include"), "Python.h").is_file():
        raise NotBuilt(f"there is no Python.h in {sysconfig.get_path('include')}")
    if importlib.util.find_spec("Cython") is None:
        raise NotBuilt("there is no Cython")
    return compiler


def _translated(root: Path, module: str, elsewhere: Path) -> tuple[Path, str, Path]:
    """A module in C, and what the C compiler is to make of it.

    Raises:
        NotBuilt: Cython cannot translate it.
    """
    from Cython.Compiler import Main

    compiling: Any = Main
    written = elsewhere / f"{module}.c"
    written.parent.mkdir(parents=True, exist_ok=True)
    options = compiling.CompilationOptions(
        output_file=str(written), include_path=[str(root)], language_level=3, compiler_directives=_DIRECTIVES
    )
    # As an option Cython does not know it: it is for single classes, in their own source.
    if module in _WITHOUT_CYCLES:
        options.compiler_directives = options.compiler_directives | {"no_gc": True}
    try:
        result = compiling.compile_single(
            str(build_stamp.source_of(root, module)), options, full_module_name=module.replace("/", ".")
        )
    # Cython has errors of its own, and fails with others of Python's where it does not know what to do.
    except Exception as error:
        raise NotBuilt(f"Cython fails on {build_stamp.source_of(root, module)}: {error}") from error
    if result.num_errors:
        raise NotBuilt(f"Cython finds {result.num_errors} errors in {build_stamp.source_of(root, module)} and its .pxd")
    return written, "-o", elsewhere / f"{module}{build_stamp.SUFFIX}"


def _put(made: Path, place: Path) -> None:
    """In one step, as a process may have the one before loaded."""
    beside = place.with_name(f".{place.name}.{os.getpid()}")
    shutil.copyfile(made, beside)
    beside.replace(place)


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
            _put(built, library)
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


if __name__ == "__main__":
    try:
        build_in_place(ROOT)
    except NotBuilt as error:
        sys.exit(f"the capture of probe-patch is not compiled: {error}")
