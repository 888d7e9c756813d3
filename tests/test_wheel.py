"""The built wheel, installed with what it asks for into an empty environment without torch, and used there."""

import ctypes
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from probe_patch import __version__
from probe_patch.demo.fixture import ERAS, actor_file
from probe_patch.runtime.build_stamp import STAMP, SUFFIX
from probe_patch.runtime.stats.backends.library import ABI
from tests.needs import needs

ROOT = Path(__file__).parents[1]
CONSTRAINTS = ROOT / "constraints" / "dev.txt"


def run(
    *command: object, folder: Path, check: bool = True, compiler: str = "no-such-compiler"
) -> subprocess.CompletedProcess[str]:
    """Away from the checkout, and with nothing of this process's environment that could reach back to it."""
    mine = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "DUMP_ON")
    env = {name: value for name, value in os.environ.items() if name not in mine}
    env |= {"PIP_CONSTRAINT": str(CONSTRAINTS), "PIP_DISABLE_PIP_VERSION_CHECK": "1", "CC": compiler}
    done = subprocess.run(list(map(str, command)), cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0 or not check, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("wheel")


def build(folder: Path, compiler: str, kind: str = "wheel", of: Path = ROOT) -> Path:
    folder.mkdir()
    command = (sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--outdir", folder, of)
    run(*command, folder=folder, compiler=compiler)
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(folder: Path) -> Path:
    index = run(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "packaging", folder=folder, check=False)
    needs(index.returncode == 0, "no package index can be reached, and the wheel's requirements come from one")
    return build(folder / "dist", "no-such-compiler")


@pytest.fixture(scope="module")
def installed(folder: Path, wheel: Path) -> Path:
    """The ``bin`` folder of an environment that holds the wheel and its requirements only."""
    run(sys.executable, "-m", "venv", folder / "venv", folder=folder)
    binaries = folder / "venv" / "bin"
    run(binaries / "python", "-m", "pip", "install", "-q", wheel, folder=folder)
    return binaries


def relative_files(folder: Path, base: Path) -> list[Path]:
    files = [path.relative_to(base) for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if "__pycache__" not in path.parts]


def sources() -> set[str]:
    """What of the checkout belongs into a wheel; an editable install has beside it what is compiled."""
    found = {str(path) for path in relative_files(ROOT / "probe_patch", ROOT) if path.suffix not in (".so", ".json")}
    for data in ("templates", "fixtures"):
        found |= {f"probe_patch/{path}" for path in relative_files(ROOT / data, ROOT)}
    return found


def held(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def test_without_a_compiler_it_is_complete_and_pure_and_holds_nothing_else(wheel: Path) -> None:
    assert held(wheel) == sources()
    assert {"probe_patch/py.typed", "probe_patch/templates/slime/prelude.py"} <= held(wheel)
    assert wheel.name == f"probe_patch-{__version__}-py3-none-any.whl"


@pytest.fixture(scope="module", params=["the checkout", "an sdist"])
def compiled_wheel(request: pytest.FixtureRequest, folder: Path) -> Path:
    """The checkout may have been compiled before, and an sdist is not."""
    compiler = os.environ.get("CC", "cc")
    needs(shutil.which(compiler) is not None, "a C compiler is missing")
    if request.param == "the checkout":
        return build(folder / "compiled", compiler)
    archive = build(folder / "sdist", "no-such-compiler", "sdist")
    shutil.unpack_archive(archive, folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    assert not [path for path in relative_files(unpacked, unpacked) if path.suffix == ".so"]
    return build(folder / "of an sdist", compiler, of=unpacked)


def test_with_a_compiler_it_holds_what_is_compiled_besides(compiled_wheel: Path, tmp_path: Path) -> None:
    library = "probe_patch/runtime/stats/backends/native/statistics.so"
    modules = {path.rpartition(".")[0] for path in sources() if path.endswith((".pxd", ".pyx"))}
    assert "probe_patch/runtime/store" in modules
    assert held(compiled_wheel) - sources() == {library, STAMP, *(f"{module}{SUFFIX}" for module in modules)}
    assert sources() <= held(compiled_wheel)
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    assert compiled_wheel.name == f"probe_patch-{__version__}-{python}-{python}-{platform}.whl"
    shutil.unpack_archive(compiled_wheel, tmp_path, "zip")
    assert ctypes.CDLL(str(tmp_path / library)).probe_patch_abi() == ABI
    names = [module.replace("/", ".") for module in modules]
    program = (
        f"import sys, importlib; sys.path.insert(0, {str(tmp_path)!r}); from probe_patch.runtime import compiled; "
        f"print(compiled.SHORTCOMING, *(importlib.import_module(name).__file__ for name in {names!r}))"
    )
    said, *files = run(sys.executable, "-c", program, folder=tmp_path).stdout.split()
    assert said == "None"
    assert files == [str(tmp_path / f"{module}{SUFFIX}") for module in modules]


def test_the_environment_is_sound_and_small(installed: Path, folder: Path) -> None:
    python = installed / "python"
    run(python, "-m", "pip", "check", folder=folder)
    assert run(installed / "probe-patch", "--version", folder=folder).stdout == f"probe-patch, version {__version__}\n"
    where = run(python, "-c", "import probe_patch; print(probe_patch.__file__)", folder=folder).stdout
    assert Path(where.strip()).is_relative_to(folder / "venv")
    no_torch = run(python, "-c", "import torch", folder=folder, check=False)
    assert "No module named 'torch'" in no_torch.stderr


def test_it_patches_every_era_and_takes_it_back(installed: Path, folder: Path) -> None:
    lay_out = (
        "import sys, pathlib; from probe_patch.demo.fixture import ERAS, lay_out; "
        "print([str(lay_out(era, pathlib.Path('trees', era))) for era in ERAS])"
    )
    run(installed / "python", "-c", lay_out, folder=folder)
    trees = [Path("trees", era) for era in ERAS]
    actors = [folder / "trees" / era / actor_file(era) for era in ERAS]
    before = [actor.read_bytes() for actor in actors]

    probe_patch = installed / "probe-patch"
    run(probe_patch, "check", "--can-apply", *trees, folder=folder)
    run(probe_patch, "apply", "--phases", "ref,actor", *trees, folder=folder)
    assert all(b'# >>> probe-patch prelude {"version"' in actor.read_bytes() for actor in actors)
    run(probe_patch, "check", "--phases", "ref,actor", *trees, folder=folder)
    assert run(probe_patch, "check", "--phases", "old", *trees, folder=folder, check=False).returncode == 1
    states = json.loads(run(probe_patch, "status", "--format", "json", *trees, folder=folder).stdout)
    assert str(states).count("'patched'") == len(ERAS)
    run(probe_patch, "revert", *trees, folder=folder)
    assert [actor.read_bytes() for actor in actors] == before
    run(probe_patch, "check", "--clean", *trees, folder=folder)


def test_it_writes_a_config_and_the_environment_that_names_it(installed: Path, folder: Path) -> None:
    probe_patch = installed / "probe-patch"
    run(probe_patch, "config", "init", "starter.json", "--dump-path", "dump", folder=folder)
    assert json.loads((folder / "starter.json").read_text())["dump_path"] == str(folder / "dump")
    run(probe_patch, "config", "check", "starter.json", folder=folder)
    runtime_env = json.loads(run(probe_patch, "env", "--config", "starter.json", folder=folder).stdout)
    assert runtime_env == {"env_vars": {"DUMP_ON": "1", "PROBE_PATCH_CONFIG": str(folder / "starter.json")}}


def test_what_a_patched_file_imports_is_there_without_torch(installed: Path, folder: Path) -> None:
    program = "from probe_patch.runtime.slime import Probe; Probe(phases=('ref',), config=None).rollout(print)(1)"
    assert run(installed / "python", "-c", program, folder=folder).stdout == "1\n"


def test_the_demo_says_what_it_lacks(installed: Path, folder: Path) -> None:
    done = run(installed / "probe-patch", "demo", folder=folder, check=False)
    assert done.returncode == 4
    assert done.stderr == (
        "probe-patch: the demo trains for real and needs torch, ray, megatron-core: "
        "install probe-patch with its extra [demo]\n"
    )
