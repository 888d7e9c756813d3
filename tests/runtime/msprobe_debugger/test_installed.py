"""Which msProbe there is, and what is said where it is not one that can be driven."""

import importlib.metadata
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from probe_patch.errors import ConfigError, SystemFailed
from probe_patch.runtime.msprobe.debugger import MsprobeDebugger
from tests.runtime.msprobe_debugger.conftest import Configure
from tests.runtime.msprobe_debugger.stand_in import EarlyDebugger, StandInDebugger, modules

HOW = "pip install mindstudio-probe on every node, or apply the patch again without --debugger"


def versions(found: str | None) -> Callable[[str], str]:
    def version(name: str) -> str:
        if found is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return found

    return version


def test_without_msprobe_one_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, configure: Configure
) -> None:
    monkeypatch.setitem(sys.modules, "msprobe", None)
    monkeypatch.setattr(importlib.metadata, "version", versions(None))
    with pytest.raises(SystemFailed) as caught:
        MsprobeDebugger(configure())
    sentence = str(caught.value)
    assert sentence.startswith("DUMP_ON is on, and this patch drives msProbe, which cannot be imported here (")
    assert sentence.endswith(HOW)
    assert "\n" not in sentence


class Broken(ModuleType):
    def __getattr__(self, name: str) -> object:
        raise OSError("libascend.so: cannot open shared object file")


@pytest.mark.parametrize(("version", "option"), [(None, ""), ("8.3.3", "-U ")])
def test_so_it_does_of_one_that_is_broken(
    monkeypatch: pytest.MonkeyPatch, configure: Configure, version: str | None, option: str
) -> None:
    monkeypatch.setattr(importlib.metadata, "version", versions(version))
    monkeypatch.setitem(sys.modules, "msprobe", ModuleType("msprobe"))
    monkeypatch.setitem(sys.modules, "msprobe.pytorch", Broken("msprobe.pytorch"))
    with pytest.raises(
        SystemFailed, match=rf"\(OSError: libascend.so: cannot open shared object file\): pip install {option}mind"
    ):
        MsprobeDebugger(configure())


@pytest.mark.parametrize(("version", "shown"), [("8.3.3", "8.3.3"), (None, "of this version")])
def test_an_early_msprobe_is_refused(
    monkeypatch: pytest.MonkeyPatch, configure: Configure, version: str | None, shown: str
) -> None:
    for name, module in modules(EarlyDebugger).items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(importlib.metadata, "version", versions(version))
    with pytest.raises(SystemFailed) as caught:
        MsprobeDebugger(configure())
    assert str(caught.value) == (
        f"msProbe {shown} cannot be driven, 26.0.0 and later can: pip install -U mindstudio-probe on every node, or "
        "apply the patch again without --debugger"
    )


@pytest.mark.parametrize(("version", "said"), [("26.2.0", False), ("26.3.0", True), ("26.0.0", True)])
def test_another_version_than_the_one_checked_is_driven_and_said(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    msprobe: type[StandInDebugger],
    configure: Configure,
    version: str,
    said: bool,
) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda _: version)
    MsprobeDebugger(configure())
    (message,) = caplog.messages
    assert message.startswith("probe-patch: msProbe records: the gradients may change in their last bits")
    assert message.endswith(f" (this is {version}, checked was 26.2.0)") == said


def test_what_msprobe_refuses_stops_the_process(msprobe: type[StandInDebugger], configure: Configure) -> None:
    msprobe.failures["config"] = ValueError("level L9")
    path = configure(level="L9")
    with pytest.raises(ConfigError) as caught:
        MsprobeDebugger(path)
    assert str(caught.value) == f"{path}: msProbe refuses it (ValueError: level L9); see its log above"
    # msProbe then has a debugger that is half made, and gives it out again.
    del msprobe.failures["config"]
    with pytest.raises(ConfigError, match=r"msProbe refused a config\.json in this process before"):
        MsprobeDebugger(path)


def test_importing_our_side_of_it_imports_no_msprobe() -> None:
    program = (
        "import sys\n"
        "import probe_patch.runtime.msprobe.debugger\n"
        "from probe_patch.runtime.slime import Probe\n"
        "from probe_patch.runtime.sglang import Probe as OtherProbe\n"
        "assert Probe(('ref',), None, 'msprobe').debugger('critic') is None\n"
        "OtherProbe(None, 'msprobe').init(lambda self: None)\n"
        "sys.exit('msprobe' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[3])
