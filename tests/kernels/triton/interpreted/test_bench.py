"""The script for a borrowed GPU runs, small and on the host."""

import sys

import pytest

from probe_patch.runtime.stats.backends.registry import VARIABLE
from tests.bench import gpu


def test_the_gpu_bench_is_not_broken(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv(VARIABLE, "triton")
    monkeypatch.setattr(sys, "argv", ["gpu", "--dry-run"])
    status = gpu.main()
    report = capsys.readouterr().out
    assert (status, "FAILED" in report) == (0, False), report
    assert report.count("\n## ") == len(gpu.SECTIONS) == 6
