"""Tests in two modes: of what is compiled, and, with ``--interpreted``, of the same modules as plain Python.

What is compiled cannot be replaced by a test. Such a test is skipped there, and ``make test-interpreted`` runs it.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from probe_patch.runtime.build_stamp import SUFFIX
from probe_patch.runtime.compiled import SHORTCOMING, STALE

OPTION = "--interpreted"

LEFT_OUT = frozenset(
    {
        "functions/test_communication.py",
        "functions/test_custom_operators.py",
        "msprobe_debugger/test_installed.py",
        "msprobe_debugger/test_service.py",
        "sglang/test_probe.py",
        "test_class_methods.py",
        "test_debug_level.py",
        "test_interop.py",
        "test_interop_values.py",
        "test_msprobe_reads.py",
        "test_seeding.py",
        "test_selection.py",
        "test_two_debuggers.py",
    }
)
"""Of ``tests/runtime``, what takes longest, and replaces nothing that is compiled."""

Replace = Callable[[object, str, object], None]
"""As ``MonkeyPatch.setattr``: replaces an attribute of ours until the test is over."""

RUNTIME = Path(__file__).parent / "runtime"

# CPython's Py_TPFLAGS_HEAPTYPE: a class that was made by a statement of Python, and can be changed by others.
_IS_MADE_BY_PYTHON = 1 << 9


def is_left_out(file: Path) -> bool:
    return file.is_relative_to(RUNTIME) and file.relative_to(RUNTIME).as_posix() in LEFT_OUT


def why_not_to_test(is_interpreted: bool, is_in_ci: bool) -> str | None:
    """What is wrong with the tree for this mode; None for nothing."""
    if SHORTCOMING == STALE:
        return "what is compiled in this tree is not from the sources that are there now: run `make venv`"
    if is_interpreted and SHORTCOMING is None:
        return f"{OPTION} is for a tree in which nothing is compiled: run `make test-interpreted`"
    if is_in_ci and not is_interpreted and SHORTCOMING is not None:
        return "in CI the capture is to be compiled: `.venv/bin/python hatch_build.py` says why it is not"
    return None


def replacing(monkeypatch: pytest.MonkeyPatch, file: Path) -> Replace:
    """For a test of this file."""

    def replace(owner: object, name: str, value: object) -> None:
        if is_fixed(owner, name):
            if is_left_out(file):
                pytest.fail(f"{file.name} replaces what is compiled: take it off LEFT_OUT in tests/interpreted.py")
            pytest.skip(f"{name} is compiled and cannot be replaced; `make test-interpreted` runs this test")
        monkeypatch.setattr(owner, name, value)

    return replace


def is_fixed(owner: object, name: str) -> bool:
    """Whether this cannot be replaced, or what is compiled would not notice: it calls what it knows by its .pxd."""
    if isinstance(owner, type):
        return _is_extension_type(owner)
    if not isinstance(owner, ModuleType) or not str(owner.__file__).endswith(SUFFIX):
        return False
    declared = str(owner.__file__).removesuffix(SUFFIX) + ".pxd"
    lines = Path(declared).read_text(encoding="utf-8").splitlines()
    known = [line for line in lines if re.search(r"\b(cimport|cpdef|cdef class)\b", line)]
    return any(re.search(rf"\b{re.escape(name)}\b", line) for line in known if not line.startswith(" "))


def _is_extension_type(kind: type) -> bool:
    module = sys.modules[kind.__module__]
    return not kind.__flags__ & _IS_MADE_BY_PYTHON and str(getattr(module, "__file__", "")).endswith(SUFFIX)
