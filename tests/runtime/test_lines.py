"""The lines of dump.json until it is written: beyond some MiB in a file that has no name."""

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe_patch.runtime import lines as module
from probe_patch.runtime.lines import Lines
from probe_patch.runtime.problems import Problems
from tests.runtime.dumps import texts_of


@pytest.fixture(autouse=True)
def few_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_IN_MEMORY", 40)
    monkeypatch.setattr(module, "_READ_AT_ONCE", 7)


def add(lines: Lines, texts: Iterable[str]) -> None:
    for text in texts:
        lines.begin().add(text)
        lines.end()


def kept_in_memory(lines: Lines) -> int:
    return lines._text.size


@given(st.lists(st.lists(st.text(st.characters(max_codepoint=127, exclude_characters="\n")))))
def test_all_lines_are_given_back_in_their_order_whenever_they_are_asked_for(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[str]]
) -> None:
    folder = tmp_path_factory.getbasetemp()
    lines, added = Lines(folder, Problems(set())), list[str]()
    for batch in batches:
        add(lines, batch)
        added += batch
        assert texts_of(lines) == added
        assert kept_in_memory(lines) <= 40


def test_the_file_has_no_name(tmp_path: Path) -> None:
    lines = Lines(tmp_path, Problems(set()))
    add(lines, ["x" * 30] * 10)
    assert kept_in_memory(lines) <= 40
    assert list(tmp_path.iterdir()) == []
    assert lines._file is not None
    assert os.fstat(lines._file.fileno()).st_dev == tmp_path.stat().st_dev


def full_disk(*_: object) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("writes", [0, 1, 5])
def test_what_cannot_be_moved_stays_in_memory_and_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, writes: int
) -> None:
    left = writes

    def half(file: int, text: memoryview, at: int) -> int:
        nonlocal left
        left -= 1
        return original(file, text[: len(text) // 2 + 1], at) if left >= 0 else full_disk()

    original = os.pwrite
    monkeypatch.setattr(os, "pwrite", half)
    problems = Problems(set())
    lines, added = Lines(tmp_path, problems), [f"line {number}" for number in range(100)]
    add(lines, added)
    add(lines, added)
    assert texts_of(lines) == added + added
    (problem,) = problems.all()
    assert (problem.kind, problem.count) == ("moving entries out of memory", 1)
    assert "No space left" in problem.message
    assert str(tmp_path) in problem.message
    assert len(caplog.messages) == 1


def test_a_folder_that_is_gone_is_no_reason_to_lose_a_line(tmp_path: Path) -> None:
    problems = Problems(set())
    lines = Lines(tmp_path / "gone", problems)
    add(lines, ["x" * 30] * 10)
    assert texts_of(lines) == ["x" * 30] * 10
    assert [problem.count for problem in problems.all()] == [1]


def test_a_line_that_was_not_ended_is_none(tmp_path: Path) -> None:
    lines = Lines(tmp_path, Problems(set()))
    add(lines, ["a"])
    lines.begin().add("cut sh")
    assert texts_of(lines) == ["a"]
    add(lines, ["b"])
    assert texts_of(lines) == ["a", "b"]


def test_a_file_that_was_cut_off_is_an_error(tmp_path: Path) -> None:
    lines = Lines(tmp_path, Problems(set()))
    add(lines, ["x" * 30] * 10)
    assert lines._file is not None
    lines._file.truncate(45)
    with pytest.raises(OSError, match="are missing from 45 on"):
        texts_of(lines)


def test_a_forked_child_leaves_the_file_of_its_parent_alone(tmp_path: Path) -> None:
    lines = Lines(tmp_path, Problems(set()))
    add(lines, [f"parent's {number}" for number in range(20)])
    child = os.fork()
    if child == 0:
        is_right = False
        try:
            add(lines, [f"child's {number}" for number in range(20)])
            is_right = "parent's 0" not in texts_of(lines) and "child's 0" in texts_of(lines)
            del lines
        finally:
            os._exit(not is_right)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    add(lines, ["at the end"])
    assert texts_of(lines) == [*(f"parent's {number}" for number in range(20)), "at the end"]
