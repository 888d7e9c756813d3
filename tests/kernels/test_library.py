"""Building the C library, loading it, and doing without."""

import logging
import shutil
import sys
from pathlib import Path

import pytest
import torch

from hatch_build import NATIVE, build_library
from probe_patch.errors import BackendUnavailable
from probe_patch.runtime.stats.backends import cpu, library
from probe_patch.runtime.stats.backends.chunked import Chunked
from probe_patch.runtime.stats.backends.cpu import Compiled, make
from probe_patch.runtime.stats.backends.library import Library
from tests.kernels.backends import HOST, ROOT, built


def sources(folder: Path, was: str, becomes: str) -> Path:
    """A copy of the sources with one change."""
    shutil.copytree(ROOT / NATIVE, folder, ignore=shutil.ignore_patterns("*.so"))
    changed = (folder / "library.c").read_text().replace(was, becomes)
    (folder / "library.c").write_text(changed)
    return folder


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """What is found of the library is looked for again."""
    monkeypatch.setattr(cpu, "_kernels", cpu._kernels.__wrapped__)
    return monkeypatch


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


@pytest.mark.parametrize("content", [None, b"", b"\x7fELF, but not for this machine"], ids=["none", "empty", "foreign"])
def test_without_a_library_torch_measures_and_says_so_where_one_looks(
    tmp_path: Path, loaded: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, content: bytes | None
) -> None:
    file = tmp_path / "statistics.so"
    if content is not None:
        file.write_bytes(content)
    loaded.setattr(cpu, "library", lambda: Library(file))
    with caplog.at_level(logging.INFO, "probe_patch"):
        assert isinstance(make(HOST, False), Chunked)
    (said,) = caplog.records
    assert said.levelname == "INFO"
    assert str(file) in said.getMessage()


def test_with_a_library_it_measures(loaded: pytest.MonkeyPatch) -> None:
    loaded.setattr(cpu, "library", lambda: Library(built()))
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
