"""Hooks on tensors that leave a tensor as it was once they are taken off."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from torch.compiler import is_compiling

if TYPE_CHECKING:
    from torch import Tensor

    from probe_patch.runtime.capture.session import Session


class GradientHook:
    """A hook of ours on a tensor, which it does not keep alive. It never raises and lets every gradient pass as it is.

    It is put on by hand, in the way of ``Tensor.register_hook``, which with its handle takes several times as long.
    torch makes a tensor's dictionary of hooks with the first one and leaves it when the last one goes. Where there was
    none before ours, there is none after them.
    """

    __slots__ = ("__weakref__", "_hooks", "_session", "_tensor")

    # Who saves the tensor is not warned of the hook.
    __torch_unserializable__ = True

    def __init__(self, session: Session) -> None:
        self._session = session

    def put_on(self, tensor: Tensor) -> None:
        """``tensor`` requires gradients. The caller has seen to it that no torch function mode is on."""
        hooks: Any = tensor._backward_hooks
        if hooks is None:
            # An operation in place gives a tensor another node, and takes this dictionary off it.
            tensor._backward_hooks = hooks = OrderedDict()
            node = tensor.grad_fn
            if node is not None:
                node._register_hook_dict(tensor)
            is_ours = True
        else:
            is_ours = bool(hooks) and all(isinstance(other, GradientHook) for other in hooks.values())
        hooks[self] = self
        self._hooks: weakref.ref[Any] = weakref.ref(hooks)
        self._tensor = weakref.ref(tensor) if is_ours else None

    def remove(self) -> None:
        """Take it off again. Asks of the caller what ``put_on`` does."""
        hooks = self._hooks()
        if hooks is not None:
            hooks.pop(self, None)
        tensor = None if self._tensor is None else self._tensor()
        if tensor is not None and tensor._backward_hooks is not None and not tensor._backward_hooks:
            tensor._backward_hooks = None

    def __call__(self, gradient: Tensor) -> None:
        self.take(gradient)

    def take(self, gradient: Tensor) -> None:
        session = self._session
        if is_compiling() or not session.enter():
            return
        try:
            self._take(gradient)
        except Exception as error:
            session.store.problems.note("recording a gradient", error)
        finally:
            session.leave()

    def _take(self, gradient: Tensor) -> None:
        """Record what arrives. The session is entered."""
        raise NotImplementedError


class FirstGradientHook(GradientHook):
    """Takes the first gradient alone: a later backward pass through the same graph brings others.

    Attributes:
        has_fired: whether it has come.
    """

    __slots__ = ("has_fired",)

    def __init__(self, session: Session) -> None:
        self._session = session
        self.has_fired = False

    def __call__(self, gradient: Tensor) -> None:
        if not self.has_fired:
            self.take(gradient)
            self.has_fired = True


def latest_hook(tensor: Tensor) -> object:
    """The hook that would run last of those on the tensor; None where there is none."""
    hooks = tensor._backward_hooks
    return next(reversed(hooks.values())) if hooks else None
