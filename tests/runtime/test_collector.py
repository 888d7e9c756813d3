"""The garbage collector's threshold while something is recorded."""

import gc
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from torch import nn

from probe_patch.runtime import collector
from probe_patch.runtime.collector import FACTOR, Patience
from tests.runtime.configs import debugger_with
from tests.runtime.dumps import only_rank, read_dump
from tests.runtime.toys import Mlp, ones


@pytest.fixture(autouse=True)
def threshold() -> Iterator[tuple[int, int, int]]:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield 700, 10, 10
    gc.set_threshold(*before)


RAISED = (700 * FACTOR, 10, 10)


def test_it_is_higher_until_the_dump_is_written(tmp_path: Path, threshold: tuple[int, int, int]) -> None:
    debugger = debugger_with(tmp_path)
    for _ in range(2):
        debugger.start(Mlp())
        assert gc.get_threshold() == RAISED
        debugger.stop()
        assert gc.get_threshold() == threshold


def test_two_recordings_raise_it_once(tmp_path: Path, threshold: tuple[int, int, int]) -> None:
    first, second = debugger_with(tmp_path / "first"), debugger_with(tmp_path / "second")
    first.start(Mlp())
    second.start(Mlp())
    assert gc.get_threshold() == RAISED
    first.stop()
    assert gc.get_threshold() == RAISED
    second.stop()
    assert gc.get_threshold() == threshold


def test_what_the_run_sets_meanwhile_stands(tmp_path: Path) -> None:
    debugger = debugger_with(tmp_path)
    debugger.start(Mlp())
    gc.set_threshold(5, 6, 7)
    debugger.stop()
    assert gc.get_threshold() == (5, 6, 7)


def test_a_collector_that_is_off_stays_off(tmp_path: Path) -> None:
    gc.set_threshold(0, 10, 10)
    debugger = debugger_with(tmp_path)
    debugger.start(Mlp())
    assert gc.get_threshold() == (0, 10, 10)
    debugger.stop()
    assert gc.get_threshold() == (0, 10, 10)


def test_a_threshold_that_cannot_be_raised_stands(tmp_path: Path) -> None:
    gc.set_threshold(1_500_000_000, 10, 10)
    debugger, model = debugger_with(tmp_path), Mlp()
    debugger.start(model)
    model(ones(2, 4))
    assert gc.get_threshold() == (1_500_000_000, 10, 10)
    debugger.stop()
    dump = read_dump(only_rank(tmp_path / "dump" / "step0"))
    assert dump.meta["problems"] == []
    assert dump.data


def test_a_debugger_that_is_let_go_puts_it_back(tmp_path: Path, threshold: tuple[int, int, int]) -> None:
    debugger, model = debugger_with(tmp_path / "first"), Mlp()
    debugger.start(model)
    model(ones(2, 4))
    # The one that was made last is kept for those who call the class.
    debugger = debugger_with(tmp_path / "second")
    gc.collect()
    assert gc.get_threshold() == threshold
    debugger.stop()


def test_nothing_is_raised_where_nothing_is_recorded(tmp_path: Path, threshold: tuple[int, int, int]) -> None:
    debugger = debugger_with(tmp_path, step=[7])
    debugger.start(nn.Identity())
    assert gc.get_threshold() == threshold
    debugger.stop()


def test_one_that_an_interruption_left_raised_is_not_raised_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threshold: tuple[int, int, int]
) -> None:
    class Recording:
        """Anything."""

    def interrupted(*numbers: int) -> None:
        gc.set_threshold(*numbers)
        raise KeyboardInterrupt

    patience, recording = Patience(), Recording()
    with monkeypatch.context() as patched:
        patched.setattr(collector, "gc", SimpleNamespace(get_threshold=gc.get_threshold, set_threshold=interrupted))
        for _ in range(3):
            with pytest.raises(KeyboardInterrupt):
                patience.begin(recording)
            assert gc.get_threshold() == RAISED
    patience.begin(recording)()
    assert gc.get_threshold() == threshold


def test_what_the_run_sets_afterwards_is_its_own(tmp_path: Path) -> None:
    patience = Patience()
    debugger = debugger_with(tmp_path)
    patience.begin(debugger)()
    gc.set_threshold(*RAISED)
    end = patience.begin(debugger)
    assert gc.get_threshold() == (RAISED[0] * FACTOR, 10, 10)
    end()
    assert gc.get_threshold() == RAISED
