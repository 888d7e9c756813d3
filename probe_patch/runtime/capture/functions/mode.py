"""The torch function mode that sees every call of a function of torch on its thread."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._device import DeviceContext

from probe_patch.runtime.capture.hooks import inside_backward

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from probe_patch.runtime.capture.functions.labels import Labels
    from probe_patch.runtime.capture.names import FunctionName
    from probe_patch.runtime.capture.nesting import Call
    from probe_patch.runtime.capture.session import Session


class FunctionMode(TorchFunctionMode):
    """Records the outermost call: while torch runs it, the mode is off, so what it calls in turn is not seen.

    It sees the thread it was put on. Functions on other threads are not recorded; if modules run there, that is noted.

    A compiled function is traced through the mode as if it were not there, and runs compiled.
    """

    def __init__(self, session: Session, labels: Labels) -> None:
        super().__init__()
        self._session = session
        self._labels = labels

    @property
    def is_over(self) -> bool:
        """Whether the recording has ended; the mode then only hands calls on."""
        return not self._session.is_open

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if torch.compiler.is_compiling():
            return func(*args, **(kwargs or {}))
        call = self._begin(func, args, kwargs or {})
        if call is None:
            return func(*args, **(kwargs or {}))
        try:
            output = func(*args, **(kwargs or {}))
        except BaseException:
            self._abandon(call)
            raise
        self._end(call, output)
        return output

    def _begin(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
        try:
            name = self._labels.of(function, sys._getframe(2))
            if name is None or inside_backward() or torch._C._get_tracing_state() is not None:
                return None
            return self._open(name, args, kwargs) if self._session.enter() else None
        except Exception as error:
            self._session.store.problems.note("recording a function's inputs", error)
            return None

    def _open(self, name: FunctionName, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        try:
            call = self._session.open_function(name)
            self._session.take_inputs(call, args, kwargs)
            return call
        finally:
            self._session.leave()

    def _abandon(self, call: Call) -> None:
        """The function raised: what went into it is recorded."""
        if not self._session.enter():
            return
        try:
            self._session.store.close_call(call)
        finally:
            self._session.leave()

    def _end(self, call: Call, output: Any) -> None:
        if not self._session.enter():
            return
        try:
            self._session.take_output(call, output)
            self._session.store.close_call(call)
        except Exception as error:
            self._session.store.problems.note("recording a function's output", error)
        finally:
            self._session.leave()


def push(mode: FunctionMode) -> None:
    """Put the mode on this thread's stack, and take those off that were stopped on another thread.

    At the bottom, as a mode of the run that was entered before ours may be left before it, and takes off whatever is on
    top. Only torch's default device insists on being lower; what ``with torch.device(…)`` enters is taken off the top.
    """
    modes = [mode for mode in _pop_all() if not (isinstance(mode, FunctionMode) and mode.is_over)]
    place = 1 if modes and isinstance(modes[0], DeviceContext) and "old_device" in vars(modes[0]) else 0
    _push_all([*modes[:place], mode, *modes[place:]])


def remove(mode: FunctionMode) -> bool:
    """Take the mode off this thread's stack, wherever it is in it by now. Whether it was there."""
    modes = _pop_all()
    _push_all([other for other in modes if other is not mode])
    return any(other is mode for other in modes)


def _pop_all() -> list[Any]:
    """The thread's modes, lowest first; its stack is then empty."""
    return [torch._C._pop_torch_function_stack() for _ in range(torch._C._len_torch_function_stack())][::-1]


def _push_all(modes: Sequence[Any]) -> None:
    for mode in modes:
        torch._C._push_on_torch_function_stack(mode)
