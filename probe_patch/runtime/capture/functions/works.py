"""Communication that is still under way: ``Work`` objects of ``torch.distributed``, and when they are waited for."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class _Pending:
    """Works that belong to one call, and what to do when all of them have been waited for."""

    def __init__(self, works: Iterable[Any], then: Callable[[], None]) -> None:
        self.missing = {id(work) for work in works}
        self.then = then


class Works:
    """The works of one session."""

    def __init__(self) -> None:
        # Works are not kept alive: one that nobody holds can no longer be waited for.
        self._pending: WeakKeyDictionary[Any, _Pending] = WeakKeyDictionary()
        self._lock = threading.Lock()
        self._open: set[_Pending] = set()

    @property
    def unfinished(self) -> int:
        """How many calls were never, or not yet, waited for."""
        return len(self._open)

    def expect(self, works: list[Any], then: Callable[[], None]) -> None:
        """Call ``then`` once each of these has been waited for."""
        pending = _Pending(works, then)
        with self._lock:
            self._open.add(pending)
            for work in works:
                self._pending[work] = pending

    def waited(self, work: Any) -> None:
        """This one has been waited for, successfully."""
        with self._lock:
            pending = self._pending.pop(work, None)
            if pending is None:
                return
            pending.missing.discard(id(work))
            if pending.missing:
                return
            self._open.discard(pending)
        pending.then()


def works_in(result: object) -> list[Any]:
    """The works that a communication has given back; none where it is complete."""
    work_type = _work_type()
    parts = result if isinstance(result, list) else [result]
    return [part for part in parts if work_type is not None and isinstance(part, work_type)]


_lock: Final = threading.Lock()
_listeners: Final[list[Works]] = []
_original: Final[list[Any]] = []


def listen(works: Works) -> None:
    """Tell ``works`` of each work that is waited for. ``Work.wait`` is replaced while anybody listens."""
    work_type = _work_type()
    if work_type is None:
        return
    with _lock:
        if not _listeners:
            _original[:] = [vars(work_type)["wait"]]
            work_type.wait = _wait
        _listeners.append(works)


def ignore(works: Works) -> bool:
    """Stop that. False where somebody else has replaced ``Work.wait`` since."""
    work_type = _work_type()
    with _lock:
        if work_type is None or works not in _listeners:
            return True
        _listeners.remove(works)
        if _listeners:
            return True
        if vars(work_type)["wait"] is not _wait:
            return False
        work_type.wait = _original[0]
        return True


def _wait(work: Any, *args: Any, **kwargs: Any) -> Any:
    result = _original[0].__get__(work)(*args, **kwargs)
    for works in tuple(_listeners):
        works.waited(work)
    return result


def _work_type() -> Any:
    distributed = sys.modules.get("torch.distributed")
    return getattr(distributed, "Work", None)
