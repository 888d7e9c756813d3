"""Values that the run hands over by name, at level debug, and what flows back to them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from probe_patch.runtime.capture.nested import DEEPEST
from probe_patch.runtime.capture.records import listed_parts, named_parts
from probe_patch.runtime.capture.session import Session
from probe_patch.runtime.capture.tensor_hooks import FirstGradientHook, GradientHook

if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_patch.runtime.store import Store


class SavedValues:
    """What is saved into one store, until ``detach``."""

    def __init__(self, store: Store) -> None:
        self._session = Session(store)
        self._counts: Counter[str] = Counter()
        self._hooks: list[GradientHook] = []

    def save(self, value: object, name: str, with_gradient: bool) -> None:
        """Record a value as it is now; ``with_gradient``, the first gradient that arrives at each of its tensors."""
        if not self._session.enter():
            return
        try:
            store = self._session.store
            number = self._counts[name]
            self._counts[name] += 1
            entry = f"{name}.{number}.debug"
            if not store.admits(entry):
                return
            record = store.saved[entry] = store.recorder.saved(entry, value)
            if with_gradient:
                # A value that has no record, as it has too many parts, is not gone through once more.
                self._await_gradients(f"{name}_grad.{number}.debug", None if record is None else value)
        except Exception as error:
            self._session.store.problems.note("recording a value", error)
        finally:
            self._session.leave()

    def detach(self) -> None:
        """Take the hooks off."""
        self._session.close()
        hooks, self._hooks = self._hooks, []
        with torch._C.DisableTorchFunction():
            for hook in hooks:
                hook.remove()

    def _await_gradients(self, entry: str, value: object) -> None:
        self._session.store.saved[entry] = None
        for place in _places(value, _Place(self._session.store.saved, entry, ""), frozenset()):
            if place.tensor.requires_grad:
                hook = _Arrival(self._session, entry, place.at)
                with torch._C.DisableTorchFunction():
                    hook.put_on(place.tensor)
                self._hooks.append(hook)


class _Place(NamedTuple):
    """Where a gradient's record goes: into ``container``, under ``key``; ``path`` leads there from the entry."""

    container: Any
    key: Any
    path: str


class _Awaited(NamedTuple):
    tensor: Tensor
    at: _Place


def _places(value: object, at: _Place, around: frozenset[int]) -> Iterator[_Awaited]:
    """Put null at the place of everything that holds no others, in the nesting of the value; give the tensors'."""
    named = named_parts(value)
    listed = None if named is not None else listed_parts(value)
    if isinstance(value, Tensor) or (named is None and listed is None) or id(value) in around or len(around) > DEEPEST:
        at.container[at.key] = None
        if isinstance(value, Tensor):
            yield _Awaited(value, at)
        return
    parts = [(str(name), part) for name, part in named] if named is not None else list(enumerate(listed or ()))
    inside: Any = {} if named is not None else [None] * len(parts)
    at.container[at.key] = inside
    for key, part in parts:
        yield from _places(part, _Place(inside, key, f"{at.path}.{key}" if at.path else str(key)), around | {id(value)})


class _Arrival(FirstGradientHook):
    """The hook of one tensor."""

    def __init__(self, session: Session, entry: str, at: _Place) -> None:
        super().__init__(session)
        self._entry = entry
        self._at = at

    def _take(self, gradient: Tensor) -> None:
        recorder = self._session.store.recorder
        self._at.container[self._at.key] = recorder.saved(self._entry, gradient, self._at.path)
