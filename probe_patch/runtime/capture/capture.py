"""Everything that is put on a model and on a process while something is recorded, and its removal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probe_patch.runtime.capture.forward_range import ForwardRange
from probe_patch.runtime.capture.functions.capture import FunctionCapture
from probe_patch.runtime.capture.functions.custom import CustomApis
from probe_patch.runtime.capture.modules import ModuleCapture
from probe_patch.runtime.capture.session import Session
from probe_patch.runtime.collector import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from probe_patch.runtime.capture.names import Model
    from probe_patch.runtime.store import Store
    from probe_patch.runtime.tokens import TokenRange


class Capture:
    """The recording of one store, from ``attach`` to ``detach``.

    Args:
        custom_apis: functions that the user has registered; recorded where functions are.
        forwards: the only ones of the model's forwards to record; None for all, and for what runs outside of them.

    Attributes:
        is_written: to be called when what was recorded is written, and all of it gone.
    """

    def __init__(self, store: Store, custom_apis: CustomApis | None = None, forwards: TokenRange | None = None) -> None:
        self._wanted = store.wanted
        self._session = Session(store)
        self._modules = ModuleCapture(self._session)
        level = self._wanted.functions
        self._functions = None if level is None else FunctionCapture(self._session, level)
        self._custom_apis = custom_apis or CustomApis()
        self._range = None if forwards is None else ForwardRange(self._session, forwards)
        self.is_written: Callable[[], object] = _nothing

    def attach(self, model: Model | None) -> None:
        """Begin. Functions are recorded on the calling thread, and on others while modules of the model run there.

        Raises:
            WrongUsage: some forwards are asked for, and not of one model.
        """
        self.is_written = PATIENCE.begin(self)
        if model is not None and self._wanted.modules:
            self._modules.attach(model)
        elif model is not None:
            self._modules.attach_unrecorded(model)
        if self._range is not None:
            self._range.attach(model)
        if self._functions is not None:
            self._functions.attach(self._custom_apis)

    def detach(self) -> None:
        """End the recording, on every thread, and take everything off again."""
        self._session.close()
        if self._functions is not None:
            self._functions.detach()
        self._modules.detach()
        if self._range is not None:
            self._range.detach()
        self._session.gradients.remove(self._session)


def _nothing() -> None:
    pass
