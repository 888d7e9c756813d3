"""Building the C library, loading it, and doing without."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from hatch_build import NATIVE, build_library
from probe_patch.errors import BackendUnavailable
from probe_patch.runtime.stats.backends import cpu, library
from probe_patch.runtime.stats.backends.chunked import Chunked
from probe_patch.runtime.stats.backends.cpu import Compiled, make
from probe_patch.runtime.stats.backends.library import Library
from probe_patch.runtime.stats.backends.registry import Backends
from tests.kernels.backends import HOST, ROOT, built


def sources(folder: Path, was: str, becomes: str) -> Path:
    """A copy of the sources with one change."""
    shutil.copytree(ROOT / NATIVE, folder, ignore=shutil.ignore_patterns("*.so"))
    changed = (folder / "library.c").read_text().replace(was, becomes)
    (folder / "library.c").write_text(changed)
    return folder


def test_the_library_that_is_built_is_the_one_that_is_loaded() -> None:
    assert Library(built()).level in (1, 3, 4)


def test_the_sources_have_the_version_that_is_loaded() -> None:
    assert f"#define ABI {library.ABI}\n" in (ROOT / NATIVE / "library.c").read_text()


def test_a_library_of_other_sources_is_refused(tmp_path: Path) -> None:
    built()
    stale = tmp_path / "stale.so"
    assert build_library(sources(tmp_path / "native", "#define ABI 1\n", "#define ABI 2\n"), stale)
    with pytest.raises(ValueError, match=r"was built from other sources \(it has version 2, not 1\)"):
        Library(stale)


def test_a_library_that_has_no_version_is_not_kept(tmp_path: Path) -> None:
    built()
    folder = sources(tmp_path / "native", "probe_patch_abi", "probe_patch_version")
    assert not build_library(folder, tmp_path / "statistics.so")


def cut_off(part: float) -> bytes:
    whole = built().read_bytes()
    return whole[: int(part * len(whole))]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(lambda: None, id="none"),
        pytest.param(lambda: b"", id="empty"),
        pytest.param(lambda: b"\x7fELF, but not for this machine", id="foreign"),
        *(
            pytest.param(lambda part=part: cut_off(part), id=f"cut off at {part}")
            for part in (0.0005, 0.1, 0.5, 0.8, 0.99)
        ),
    ],
)
def test_without_a_whole_library_torch_measures_and_says_so(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    content: Callable[[], bytes | None],
) -> None:
    file = tmp_path / "statistics.so"
    if (found := content()) is not None:
        file.write_bytes(found)
    monkeypatch.setattr(cpu, "library", lambda: Library(file))
    backends = Backends()
    for counts in (False, True):
        measures = backends.on(HOST, counts)
        assert isinstance(measures.backend, Chunked)
        assert str(file) in str(measures.shortcoming)
    (said,) = caplog.records
    assert said.levelname == "WARNING"
    assert "install probe-patch again where there is a C compiler" in said.getMessage()


@pytest.mark.parametrize("compiler", ["/nonexistent", "false", '"'])
def test_a_compiler_that_is_none_builds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiler: str) -> None:
    monkeypatch.setenv("CC", compiler)
    assert not build_library(ROOT / NATIVE, tmp_path / "statistics.so")
    assert list(tmp_path.iterdir()) == []


def test_with_a_library_it_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "library", lambda: Library(built()))
    assert isinstance(make(HOST, False), Compiled)


def test_it_is_for_the_host_only() -> None:
    with pytest.raises(BackendUnavailable, match="not on cuda"):
        make(torch.device("cuda"), False)


@pytest.mark.parametrize("compiler", ["no-such-compiler", "false", f"{sys.executable} -c pass"])
def test_where_it_cannot_be_compiled_nothing_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiler: str
) -> None:
    monkeypatch.setenv("CC", compiler)
    assert not build_library(ROOT / NATIVE, tmp_path / "statistics.so")
    assert list(tmp_path.iterdir()) == []


def test_a_compiler_that_knows_no_newer_processors_builds_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built()
    old = tmp_path / "old-cc"
    old.write_text('#!/bin/sh\ncase "$*" in *x86-64-v*) exit 1;; esac\nexec cc "$@"\n')
    old.chmod(0o755)
    monkeypatch.setenv("CC", str(old))
    assert build_library(ROOT / NATIVE, tmp_path / "statistics.so")
    assert Library(tmp_path / "statistics.so").level == 1
