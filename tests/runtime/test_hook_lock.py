"""The lock of a dump: compiled and as plain Python, the same."""

import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from probe_patch.runtime import hook_lock
from tests.runtime.plain import plain_twin

MODULES = pytest.mark.parametrize("module", [hook_lock, plain_twin(hook_lock)], ids=["as it is imported", "plain"])
LONG = 60.0


class Holder:
    """Another thread that has taken a lock."""

    def __init__(self, lock: Any) -> None:
        self._lock = lock
        self._has, self._may_end = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._hold)
        self._thread.start()
        assert self._has.wait(LONG)

    def _hold(self) -> None:
        with self._lock:
            self._has.set()
            self._may_end.wait(LONG)

    def end(self) -> None:
        self._may_end.set()
        self._thread.join()


def is_free(lock: Any) -> bool:
    """For another thread than this one."""
    found: list[bool] = []

    def ask() -> None:
        found.append(lock.take())
        if found[0]:
            lock.give_back()

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    return found[0]


@MODULES
def test_its_thread_may_take_it_again(module: Any) -> None:
    lock = module.HookLock()
    assert lock.take() and lock.wait(0.0) and lock.take()
    with lock:
        assert not is_free(lock)
    for _ in range(2):
        lock.give_back()
    assert not is_free(lock)
    lock.give_back()
    assert is_free(lock)


@MODULES
def test_another_thread_waits_for_it_and_no_longer_than_it_says(module: Any) -> None:
    lock = module.HookLock()
    holder = Holder(lock)
    assert not lock.take()
    began = time.monotonic()
    assert not lock.wait(0.2)
    assert time.monotonic() - began >= 0.2
    threading.Timer(0.1, holder.end).start()
    assert lock.wait(LONG)
    lock.give_back()
    assert is_free(lock)


@MODULES
def test_only_who_has_taken_it_can_give_it_back(module: Any) -> None:
    lock = module.HookLock()
    with pytest.raises(RuntimeError, match="cannot release un-acquired lock"):
        lock.give_back()
    holder = Holder(lock)
    with pytest.raises(RuntimeError, match="cannot release un-acquired lock"):
        lock.give_back()
    holder.end()
    assert is_free(lock)


@pytest.fixture
def alarms() -> Iterator[list[int]]:
    """Signals that came."""
    came: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _: came.append(number))
    yield came
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@MODULES
def test_signals_are_handled_while_it_is_waited_for(module: Any, alarms: list[int]) -> None:
    lock = module.HookLock()
    holder = Holder(lock)
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    began = time.monotonic()
    assert not lock.wait(0.4)
    assert time.monotonic() - began >= 0.4
    assert len(alarms) > 1
    holder.end()


@MODULES
def test_what_a_signals_handler_raises_ends_the_waiting(module: Any) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    lock = module.HookLock()
    holder = Holder(lock)
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(KeyboardInterrupt):
            lock.wait(LONG)
    finally:
        signal.signal(signal.SIGALRM, before)
    holder.end()
    assert is_free(lock)


@MODULES
def test_many_threads_take_turns(module: Any) -> None:
    lock, inside, most = module.HookLock(), list[None](), list[int]()

    def work() -> None:
        for _ in range(500):
            if not lock.take():
                assert lock.wait(LONG)
            inside.append(None)
            most.append(len(inside))
            inside.pop()
            lock.give_back()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(most), set(most)) == (8 * 500, {1})
