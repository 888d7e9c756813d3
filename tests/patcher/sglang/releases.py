"""Parametrises tests over releases of SGLang: a spread, or all of them."""

import pytest

from tests.harness.sglang_releases import MATRIX_OPTION, Release, releases

PATCHED = "patched_release"
NATIVE = "native_release"


def parametrise(metafunc: pytest.Metafunc) -> None:
    """Give ``patched_release`` every release that is patched, and ``native_release`` every one that needs no patch."""
    chosen = releases(everything=bool(metafunc.config.getoption(MATRIX_OPTION)))
    for name, native in ((PATCHED, False), (NATIVE, True)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, [each for each in chosen if each.native is native], ids=_version)


def _version(release: Release) -> str:
    return release.version
