"""Recording some of a model's forwards only: those of a range, counted from a start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from probe_patch.errors import WrongUsage
from probe_patch.runtime.capture.hooks import CallHook
from probe_patch.runtime.capture.names import named_modules
from probe_patch.runtime.capture.tracing import inside_backward

if TYPE_CHECKING:
    from torch import nn
    from torch.utils.hooks import RemovableHandle

    from probe_patch.runtime.capture.names import Model
    from probe_patch.runtime.capture.session import Session
    from probe_patch.runtime.tokens import TokenRange


class ForwardRange:
    """Keeps a session paused except from the beginning of the first forward of a range to the end of its last one."""

    def __init__(self, session: Session, forwards: TokenRange) -> None:
        self._session = session
        self._forwards = forwards
        self._handles: list[RemovableHandle] = []
        self.passed = 0
        session.is_paused = True

    def attach(self, model: Model | None) -> None:
        """Count the forwards of this model, which has all other hooks already.

        Raises:
            WrongUsage: there is no model, or more than one.
        """
        roots = [] if model is None else [named.module for named in named_modules(model) if named.is_root]
        if len(roots) != 1:
            raise WrongUsage(
                f"token_range counts the forwards of one model, and start() was given {len(roots)}; pass one model, or "
                "leave token_range out"
            )
        # Before the first and after the last of all hooks, so that the root's own entry is inside.
        self._handles.append(roots[0].register_forward_pre_hook(_Begins(self), prepend=True))
        self._handles.append(roots[0].register_forward_hook(_Ends(self), always_call=True))

    def detach(self) -> None:
        handles, self._handles = self._handles, []
        for handle in handles:
            handle.remove()

    def begin(self) -> None:
        """A forward begins."""
        if self._forwards.begins(self.passed):
            self._session.is_paused = False

    def end(self) -> None:
        """A forward is over, however it ended."""
        if self._forwards.ends(self.passed):
            self._session.is_paused = True
        self.passed += 1


class _Begins(CallHook):
    def __init__(self, forwards: ForwardRange) -> None:
        self._forwards = forwards

    def __call__(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        if not torch.compiler.is_compiling() and not inside_backward():
            self._forwards.begin()


class _Ends(CallHook):
    def __init__(self, forwards: ForwardRange) -> None:
        self._forwards = forwards

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        if not torch.compiler.is_compiling() and not inside_backward():
            self._forwards.end()
