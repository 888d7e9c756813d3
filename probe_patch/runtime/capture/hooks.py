"""The two hooks of a recorded module, as objects that survive what people do to models."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import torch

from probe_patch.runtime.stats.apart import apart_from_the_run

if TYPE_CHECKING:
    from torch import nn

    from probe_patch.runtime.store import Store


def absent_hook(*_: object) -> None:
    """What a copied or unpickled model has in the place of our hooks: a copy is not being recorded."""


class CallHook:
    """Shared by the hooks of one module. It never raises, never returns anything, and goes quiet when compiled."""

    def __init__(self, store: Store, label: str) -> None:
        self._store = store
        self._label = label

    def __reduce__(self) -> tuple[Any, ...]:
        return _absent, ()


class BeforeForward(CallHook):
    """Opens the call and measures its inputs, which an in-place module is about to overwrite."""

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None:
            return
        try:
            call = self._store.open_call(self._label, sys.exc_info()[1])
            with apart_from_the_run():
                call.record["input_args"] = self._store.recorder.arguments(args)
                call.record["input_kwargs"] = self._store.recorder.keywords(kwargs)
        except Exception as error:
            self._store.problems.note("recording a module's inputs", error)


class AfterForward(CallHook):
    """Measures the outputs and closes the call; called too when the forward raised, then without an output."""

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        if torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None:
            return
        try:
            call = self._store.nesting.leave(self._label)
            if call is None:
                return
            raised = sys.exc_info()[1] is not call.handled
            call.handled = None
            with apart_from_the_run():
                if not raised:
                    call.record["output"] = self._store.recorder.output(output)
                call.record["parameters"] = self._store.recorder.parameters(module)
            self._store.close_call(call)
        except Exception as error:
            self._store.problems.note("recording a module's outputs", error)


class BeforePass(CallHook):
    """On the root of the model, which is not recorded: nothing can be left open from an earlier pass."""

    def __call__(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        if not torch.compiler.is_compiling():
            self._store.nesting.clear()


def _absent() -> Any:
    return absent_hook
