"""The torch function mode that sees every call of a function of torch on its thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.compiler import is_compiling
from torch.overrides import TorchFunctionMode
from torch.utils._device import DeviceContext

from probe_patch.runtime.capture.functions.seen import SeenCalls

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from probe_patch.runtime.capture.functions.calls import FunctionCalls
    from probe_patch.runtime.capture.functions.labels import Labels
    from probe_patch.runtime.capture.session import Session


try:
    from probe_patch.runtime.capture.functions.quick_mode import QuickMode
except ImportError:

    class QuickMode:  # type: ignore[no-redef]
        """Where nothing is compiled, torch calls the method that is written in Python."""


class FunctionMode(QuickMode, TorchFunctionMode):
    """Records the outermost call: while torch runs it, the mode is off, so what it calls in turn is not seen.

    It sees the threads it was put on.

    A compiled function is traced through the mode as if it were not there, and runs compiled.
    """

    def __init__(self, calls: FunctionCalls, labels: Labels, session: Session) -> None:
        super().__init__()
        self.seen = SeenCalls(calls, labels)
        self._session = session

    @property
    def is_over(self) -> bool:
        """Whether the recording has ended; the mode then only hands calls on."""
        return not self._session.is_open

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if is_compiling():
            return func(*args, **(kwargs or {}))
        return self.seen.run(func, args, kwargs)


def push(mode: FunctionMode) -> None:
    """Put the mode on this thread's stack, and take those off that were stopped while they were on it.

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
